//! Terminal events → what happens to the app.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};

use crate::keys::{Action, action};
use crate::state::app::{App, Outcome};

/// The longest filter, in characters.
const MAX_FILTER: usize = 60;

/// Does what a terminal event asks for.
pub fn handle(app: &mut App, event: &Event) -> Outcome {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => press(app, key),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => app.apply(Action::Line(-3)),
            MouseEventKind::ScrollDown => app.apply(Action::Line(3)),
            _ => Outcome::Stay,
        },
        _ => Outcome::Stay,
    }
}

fn press(app: &mut App, key: &KeyEvent) -> Outcome {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if app.typing && !control {
        type_filter(app, key.code);
        return Outcome::Stay;
    }
    action(key.code, key.modifiers).map_or(Outcome::Stay, |action| app.apply(action))
}

fn type_filter(app: &mut App, code: KeyCode) {
    match code {
        KeyCode::Enter => app.typing = false,
        KeyCode::Esc => {
            app.typing = false;
            app.filter.clear();
        }
        KeyCode::Backspace => {
            app.filter.pop();
        }
        KeyCode::Char(c) if !c.is_control() && app.filter.chars().count() < MAX_FILTER => app.filter.push(c),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(app: &mut App, code: KeyCode) -> Outcome {
        handle(app, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn letters_go_to_the_filter_while_it_is_typed() {
        let mut app = App::default();
        key(&mut app, KeyCode::Char('/'));
        for c in "q7".chars() {
            assert_eq!(key(&mut app, KeyCode::Char(c)), Outcome::Stay);
        }
        key(&mut app, KeyCode::Enter);
        assert_eq!((app.filter.as_str(), app.typing), ("q7", false));
        assert_eq!(key(&mut app, KeyCode::Char('q')), Outcome::Quit);
        key(&mut app, KeyCode::Esc);
        assert!(app.filter.is_empty());
    }

    #[test]
    fn control_c_leaves_from_anywhere() {
        let mut app = App { typing: true, help: true, ..App::default() };
        let event = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(handle(&mut app, &event), Outcome::Interrupt);
    }
}
