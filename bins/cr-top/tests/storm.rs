//! Random keys, resizes and pauses over random streams, valid and not: nothing panics, nothing is drawn out of bounds.

mod support;

use cr_report::events::Event;
use cr_top::input;
use cr_top::palette::{Level, Palette};
use cr_top::state::app::Outcome;
use cr_top::state::{App, Live, Run};
use cr_top::view::{self, Look, Scene};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self as term, KeyCode, KeyEvent, KeyModifiers};
use support::Sample;

#[derive(Clone, Debug)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Resize(u16, u16),
    Feed(usize),
    End,
    BadLine,
}

fn key() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        6 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        1 => any::<char>().prop_map(KeyCode::Char),
        4 => proptest::sample::select(vec![
            KeyCode::Tab, KeyCode::BackTab, KeyCode::Esc, KeyCode::Enter, KeyCode::Backspace, KeyCode::Up, KeyCode::Down,
            KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::Left, KeyCode::Right, KeyCode::F(1),
        ]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), prop_oneof![9 => Just(KeyModifiers::NONE), 1 => Just(KeyModifiers::CONTROL)])
            .prop_map(|(code, modifiers)| Step::Key(code, modifiers)),
        2 => (0u16..260, 0u16..90).prop_map(|(width, height)| Step::Resize(width, height)),
        4 => (1usize..400).prop_map(Step::Feed),
        1 => Just(Step::End),
        1 => Just(Step::BadLine),
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    (1u32..60, 0u64..500, 1.0f64..400.0, any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(shards, requests, qps, seed, ends, incidents)| Sample {
            shards,
            requests,
            qps,
            seed,
            ends,
            incidents,
        },
    )
}

/// Values that a valid but strange stream may hold.
fn strange(mut event: Event, n: u64) -> Event {
    match &mut event {
        Event::Finish(finish) => {
            (finish.ttft_s, finish.prompt_tokens, finish.cached_tokens) = (1.4e7, 1 << 50, 1 << 50);
            finish.key = "漢\u{202e}\u{7}\n".into();
            finish.t_s = [0.0, 1.4e7, finish.t_s][(n % 3) as usize];
        }
        Event::Shards(shards) => {
            for state in &mut shards.shards {
                (state.queued, state.kv_used_blocks, state.kv_total_blocks) =
                    (u64::MAX >> 20, 1 << 40, n % 2);
                (state.computed_tokens, state.kv_protected_blocks) = ((n % 7) << 40, u64::MAX);
            }
        }
        Event::Warning(warning) => warning.detail = "é".repeat(300),
        Event::Fault(fault) => fault.kind = "slow\u{1b}[31m".into(),
        Event::Plan(plan) => (plan.churn, plan.imbalance) = (f64::NAN, f64::INFINITY),
        _ => {}
    }
    event
}

fn play(sample: Sample, steps: &[Step], ascii: bool, odd: bool) {
    let mut events = sample
        .events()
        .into_iter()
        .enumerate()
        .map(|(n, event)| if odd && n % 5 == 3 { strange(event, n as u64) } else { event });
    let mut run = Run::new("run.ndjson");
    let runs = 1 + usize::from(odd);
    let mut app = App::new(runs);
    let mut frozen: Option<Live> = None;
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a test backend");
    let look = Look { palette: Palette { level: Level::True }, ascii };
    for step in steps {
        match step {
            Step::Key(code, modifiers) => {
                let outcome = input::handle(&mut app, &term::Event::Key(KeyEvent::new(*code, *modifiers)));
                let leaves = matches!(outcome, Outcome::Quit | Outcome::Interrupt);
                assert!(!leaves || matches!(code, KeyCode::Char('q' | 'c')));
            }
            Step::Resize(width, height) => {
                terminal = Terminal::new(TestBackend::new(*width, *height)).expect("a test backend");
                input::handle(&mut app, &term::Event::Resize(*width, *height));
            }
            Step::Feed(count) => {
                events.by_ref().take(*count).for_each(|event| run.observe(&event));
                run.refresh();
            }
            Step::End => run.end(),
            Step::BadLine => run.live.bad_line("run.ndjson:7: not an event: \u{1b}[2J".into()),
        }
        frozen = app.paused.then(|| frozen.take().unwrap_or_else(|| run.live.clone()));
        let live = frozen.as_ref().unwrap_or(&run.live);
        let scene = Scene { runs: &[live, live][..runs], system: None, look };
        terminal.draw(|frame| view::draw(frame.area(), frame.buffer_mut(), &mut app, &scene)).expect("drawn");
        let cells = terminal.backend().buffer().content();
        assert!(
            cells.iter().all(|cell| !cell.symbol().chars().any(char::is_control)),
            "a control character is drawn"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        sample in sample(),
        steps in proptest::collection::vec(step(), 1..60),
        ascii in any::<bool>(),
        odd in any::<bool>(),
    ) {
        play(sample, &steps, ascii, odd);
    }
}
