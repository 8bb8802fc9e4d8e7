//! The report as one page that needs nothing else: no script, no style sheet, no picture beside it.

use crate::markdown;
use crate::record::Record;
use crate::svg::Figure;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border: 1px solid #8888; padding: .3rem .6rem; }
td { white-space: nowrap; }
th { text-align: left; }
svg { max-width: 100%; height: auto; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid #8888; }
blockquote { margin: 1rem 0; padding: .1rem 1rem; border-left: .3rem solid #c94c58; }
summary { cursor: pointer; }";

/// Renders the report of a record with its figures drawn within.
pub fn render(record: &Record, figures: &[(Figure, String)]) -> String {
    let shown: Vec<Figure> = figures.iter().map(|(figure, _)| *figure).collect();
    let text = markdown::render(record, &shown);
    let title = if record.file.title.is_empty() { &record.file.suite } else { &record.file.title };
    let mut body = String::new();
    html::push_html(&mut body, inlined(&text, figures));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title)
    )
}

/// The events of the Markdown, pictures replaced by their drawing and tables put into boxes that scroll on a narrow screen.
fn inlined<'a>(text: &'a str, figures: &'a [(Figure, String)]) -> impl Iterator<Item = Event<'a>> {
    let mut within = false;
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    parser.flat_map(move |event| {
        let events: Vec<Event<'a>> = match event {
            Event::Start(Tag::Image { ref dest_url, .. }) => {
                match figures.iter().find(|(figure, _)| figure.file == dest_url.as_ref()) {
                    Some((_, svg)) => {
                        within = true;
                        vec![Event::InlineHtml(CowStr::Borrowed(svg))]
                    }
                    None => vec![event],
                }
            }
            Event::End(TagEnd::Image) if within => {
                within = false;
                Vec::new()
            }
            // The text that stands for a picture.
            _ if within => Vec::new(),
            Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"scroll\">\n".into()), event],
            Event::End(TagEnd::Table) => vec![event, Event::Html("</div>\n".into())],
            event => vec![event],
        };
        events
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
