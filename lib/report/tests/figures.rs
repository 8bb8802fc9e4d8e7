//! Every figure: well-formed, all text on the sheet, no text over another.

mod common;

use common::suite::{Caricature, POLICIES, run, suite};
use cr_report::SuiteReport;
use cr_report::design::{Axis, Variant};
use cr_report::record::Stored;
use cr_report::regimes::{Foretold, Map, Place};
use cr_report::run::SparseDistribution;
use cr_report::svg::{FIGURES, INK, Rgb, contrast};
use roxmltree::{Document, Node};

/// The box that a text covers: left, top, right, bottom.
#[derive(Debug, Clone)]
struct Box {
    text: String,
    edges: [f64; 4],
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} of {node:?}"))
}

/// A glyph is taken to be 0.6 of its size wide, which is more than sans-serif fonts take on average.
fn text_box(node: Node<'_, '_>) -> Box {
    let text = node.text().unwrap_or_default().trim().to_owned();
    let (x, y, size) = (number(node, "x"), number(node, "y"), number(node, "font-size"));
    let width = text.chars().count() as f64 * size * 0.6;
    let left = match node.attribute("text-anchor") {
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        _ => x,
    };
    let shift = match node.attribute("dy") {
        Some("0.76em") => 0.76 * size,
        Some("0.5ex") => 0.25 * size,
        Some("-0.5ex") => -0.25 * size,
        _ => 0.0,
    };
    let (top, bottom) = (y + shift - 0.76 * size, y + shift + 0.2 * size);
    let edges = match node.attribute("transform") {
        // Turned about its own anchor by three quarters: what was right of it is now above.
        Some(turn) if turn.starts_with("rotate(270") => {
            [x + (top - y), y - (left + width - x), x + (bottom - y), y - (left - x)]
        }
        Some(other) => panic!("unexpected transform {other}"),
        None => [left, top, left + width, bottom],
    };
    Box { text, edges }
}

/// GitHub's pages, light and dark.
const PAGES: [Rgb; 2] = [(0xff, 0xff, 0xff), (0x0d, 0x11, 0x17)];

/// The colour behind the middle of a text: the page, and what is filled over it.
fn ground(root: Node<'_, '_>, text: &Box, page: Rgb) -> Rgb {
    let [left, top, right, bottom] = text.edges;
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let filled = root.descendants().filter(|node| node.has_tag_name("rect")).filter(|rect| {
        let (from, width) = (number(*rect, "x"), number(*rect, "width"));
        let (above, height) = (number(*rect, "y"), number(*rect, "height"));
        (from..from + width).contains(&x)
            && (above..above + height).contains(&y)
            && rect.attribute("fill") != Some("none")
    });
    filled.fold(page, |below, rect| {
        let hex = rect.attribute("fill").unwrap_or_default().trim_start_matches('#').to_owned();
        let channel = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("is a colour");
        let opacity = number(rect, "opacity");
        let mix =
            |over: u8, under: u8| (f64::from(over) * opacity + f64::from(under) * (1.0 - opacity)) as u8;
        (mix(channel(0), below.0), mix(channel(2), below.1), mix(channel(4), below.2))
    })
}

fn overlap(a: &Box, b: &Box) -> bool {
    let slack = 0.5;
    a.edges[0] + slack < b.edges[2]
        && b.edges[0] + slack < a.edges[2]
        && a.edges[1] + slack < b.edges[3]
        && b.edges[1] + slack < a.edges[3]
}

/// Checks every figure of a suite and says how many there were.
fn check(case: &str, suite: &SuiteReport) -> usize {
    let record = Stored::new(suite).expect("a record").record;
    let mut drawn = 0;
    for figure in FIGURES {
        let Some(svg) = figure.draw(&record).expect("a figure") else { continue };
        drawn += 1;
        let name = format!("{case}: {}", figure.file);
        let document = Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        let root = document.root_element();
        let (width, height) = (number(root, "width"), number(root, "height"));
        assert!(root.children().any(|node| node.has_tag_name("title")), "{name} has a title");
        let boxes: Vec<Box> = root.descendants().filter(|n| n.has_tag_name("text")).map(text_box).collect();
        assert!(boxes.len() > 3, "{name} has text");
        for one in &boxes {
            let [left, top, right, bottom] = one.edges;
            assert!(
                left >= 0.0 && top >= 0.0 && right <= width && bottom <= height,
                "{name}: {:?} off the sheet: {:?}",
                one.text,
                one.edges
            );
        }
        for (index, one) in boxes.iter().enumerate() {
            for other in &boxes[index + 1..] {
                assert!(!overlap(one, other), "{name}: {:?} over {:?}", one.text, other.text);
            }
            for page in PAGES {
                let ground = ground(root, one, page);
                let contrast = contrast(INK, ground);
                assert!(contrast >= 3.5, "{name}: {:?} on {ground:?} of {page:?}: {contrast:.2}", one.text);
            }
        }
    }
    drawn
}

#[test]
fn overlapping_and_escaping_text_would_be_seen() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='100'>\
               <text x='10' y='50' dy='0.76em' text-anchor='start' font-size='12'>first</text>\
               <text x='30' y='52' dy='0.76em' text-anchor='start' font-size='12'>second</text>\
               <text x='10' y='80' dy='0.5ex' text-anchor='middle' font-size='12'>escapes</text>\
               <text x='8' y='40' dy='0.76em' text-anchor='middle' font-size='12' transform='rotate(270, 8, 40)'>turned</text></svg>";
    let document = Document::parse(svg).expect("well-formed");
    let boxes: Vec<Box> = document.descendants().filter(|n| n.has_tag_name("text")).map(text_box).collect();
    assert!(overlap(&boxes[0], &boxes[1]) && !overlap(&boxes[0], &boxes[2]));
    assert!(boxes[2].edges[0] < 0.0);
    let [left, top, right, bottom] = boxes[3].edges;
    assert!(right - left < 13.0 && bottom - top > 40.0 && left >= 0.0, "{:?}", boxes[3]);
}

fn of_runs(runs: Vec<cr_report::RunReport>) -> SuiteReport {
    SuiteReport { suite: "x".into(), baseline: Some("flat".into()), runs, ..SuiteReport::default() }
}

#[test]
fn of_six_policies_and_five_seeds() {
    assert!(check("six", &suite(&[], 5, 8, 300)) >= 3);
    assert!(check("thirty shards", &suite(&[], 2, 30, 300)) >= 3);
    assert!(check("two hundred shards", &suite(&[], 2, 200, 300)) >= 3);
}

/// All figures but those of suites with variants.
const OF_A_LADDER: usize = FIGURES.len() - 2;

/// A suite of variants, a small ladder each; later variants are offered more.
fn variants(ats: &[&[(&str, &str)]]) -> SuiteReport {
    let mut whole = SuiteReport::default();
    for (index, at) in ats.iter().enumerate() {
        let label = match at {
            [] => "as it stands".to_owned(),
            at => at.iter().map(|(axis, point)| format!("{axis} {point}")).collect::<Vec<_>>().join(", "),
        };
        let mut part = suite(&[5.0, 20.0, 30.0 + 10.0 * index as f64], 2, 4, 120);
        for run in &mut part.runs {
            run.summary.variant = Some(label.clone());
            run.header.variant = Some(label.clone());
            run.summary.qps = run.summary.qps.map(|qps| qps.min(30.0));
            run.header.qps = run.summary.qps;
        }
        let at = at.iter().map(|(axis, point)| ((*axis).to_owned(), (*point).to_owned())).collect();
        let foretold = Some(Foretold { spread: 0.1, pinned: 0.1 + 0.1 * index as f64 });
        whole.design.variants.push(Variant { label, at, foretold });
        whole.runs.append(&mut part.runs);
        whole = SuiteReport { runs: whole.runs, design: whole.design, ..part };
    }
    whole.slo.ttft_p99_s = Some(0.3);
    whole.design.ladder_qps = vec![5.0, 20.0, 30.0];
    whole
}

fn axis(name: &str, points: &[&str]) -> Axis {
    Axis { name: name.into(), points: points.iter().map(|point| (*point).to_owned()).collect() }
}

#[test]
fn of_a_regime_map() {
    let names = ["a skew", "a rather long name of a share", "pressure"];
    let mut made = variants(&[
        &[(names[0], "0.5"), (names[1], "10 %"), (names[2], "low")],
        &[(names[0], "1.2"), (names[1], "10 %"), (names[2], "low")],
        &[(names[0], "0.5"), (names[1], "90 %"), (names[2], "low")],
        &[(names[0], "1.2"), (names[1], "90 %"), (names[2], "high")],
    ]);
    made.design.axes = vec![
        axis(names[0], &["0.5", "1.2"]),
        axis(names[1], &["10 %", "90 %"]),
        axis(names[2], &["low", "high"]),
    ];
    let place = |name: &str, candidate_hit| Place {
        name: name.into(),
        baseline_hit: 0.1,
        candidate_hit,
        published: "win".into(),
    };
    let places =
        vec![place("8B whales", 0.77), place("Aggregate A, which has a long name, too long for a cell", 0.1)];
    made.design.map = Some(Map { x: names[0].into(), y: names[1].into(), places });
    keep(&made);
    assert_eq!(check("regimes", &made), OF_A_LADDER);
    let report = cr_report::markdown::render(&Stored::new(&made).expect("a record").record, &[]);
    assert!(report.contains("in 4 places") || report.contains("of 4 places"), "{report}");
}

#[test]
fn of_a_sensitivity_analysis() {
    let mut made = variants(&[
        &[],
        &[("virtual nodes", "1")],
        &[("virtual nodes", "64")],
        &[("a parameter whose name is longer than its column", "0.25")],
    ]);
    made.design.axes = vec![
        axis("virtual nodes", &["1", "64"]),
        axis("a parameter whose name is longer than its column", &["0.25"]),
    ];
    made.design.one_at_a_time = true;
    keep(&made);
    assert_eq!(check("sensitivity", &made), OF_A_LADDER);
}

/// A ladder with an objective and an ablation: every figure there is.
fn ladder(rates: &[f64], slo_s: f64) -> SuiteReport {
    let mut suite = suite(rates, 3, 4, 240);
    suite.slo.ttft_p99_s = Some(slo_s);
    suite.ablation = ["flat", "preble", "chwbl", "cacheroute"].map(String::from).to_vec();
    suite
}

/// The steps of an ablation are told apart by what their names end in.
#[test]
fn of_an_ablation_of_long_names() {
    let names = ["affinity", "affinity+replication", "affinity+replication+balance"];
    let mut made = ladder(&[5.0, 20.0], 0.3);
    made.ablation = names.map(String::from).to_vec();
    for (policy, name) in ["preble", "chwbl", "cacheroute"].into_iter().zip(names) {
        for run in made.runs.iter_mut().filter(|run| run.summary.policy == policy) {
            run.summary.policy = name.into();
            run.header.policy = name.into();
        }
    }
    assert_eq!(check("ablation", &made), OF_A_LADDER);
    let record = Stored::new(&made).expect("a record").record;
    let waterfall = FIGURES.iter().find(|figure| figure.file == "waterfall.svg").expect("is there");
    let svg = waterfall.draw(&record).expect("is drawn").expect("is drawn");
    let document = Document::parse(&svg).expect("well-formed");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for line in ["affinity", "affinity+replication", "affinity+replication+", "balance"] {
        assert!(texts.contains(&line), "{line} of {texts:?}");
    }
    assert!(texts.iter().all(|text| !text.contains('…')), "{texts:?}");
}

#[test]
fn of_a_ladder_that_saturates() {
    let rates = [5.0, 12.0, 20.0, 30.0, 50.0, 80.0, 240.0];
    let made = ladder(&rates, 0.3);
    keep(&made);
    assert_eq!(check("ladder", &made), OF_A_LADDER);
    assert_eq!(check("censored above", &ladder(&[2.0, 5.0], 9.0)), OF_A_LADDER);
    assert_eq!(check("censored below", &ladder(&[2.0, 5.0], 1e-4)), OF_A_LADDER);
    // Nothing but saturation: no latency is drawn against the rate.
    let mut saturated = ladder(&[10.0, 20.0], 0.3);
    saturated.runs.iter_mut().for_each(|run| run.summary.saturated = true);
    assert_eq!(check("all saturated", &saturated), OF_A_LADDER - 1);
}

/// Leaves the figures in the folder that `CR_KEEP_REPORT` names, to be looked at.
fn keep(suite: &SuiteReport) {
    if let Ok(dir) = std::env::var("CR_KEEP_REPORT") {
        cr_report::write_report(&std::path::Path::new(&dir).join("ladder"), suite).expect("a report");
    }
}

#[test]
fn of_one_run_and_of_equal_runs() {
    assert!(check("one", &of_runs(vec![run(POLICIES[0], 1, 5.0, 1, 50)])) >= 3);
    let twice =
        (1..3).flat_map(|_| [run(POLICIES[0], 1, 5.0, 3, 50), run(POLICIES[5], 1, 5.0, 3, 50)]).collect();
    assert!(check("equal", &of_runs(twice)) >= 3);
}

#[test]
fn of_long_and_strange_names_and_many_policies() {
    const NAMES: [&str; 12] = [
        "cacheroute-with-hysteresis-and-byte-aware-admission",
        "a<b & \"c\" 'd'",
        "",
        "政策-cache-路由-with-a-long-tail-of-text",
        "p5",
        "p6",
        "p7",
        "p8",
        "p9",
        "p10",
        "p11",
        "p12",
    ];
    let runs = NAMES.iter().enumerate().map(|(n, name)| {
        run(Caricature { name, hit: 0.3 + n as f64 * 0.05, skew: n as f64 * 0.1 }, 1, 9.0, 6, 80)
    });
    assert!(check("names", &of_runs(runs.collect())) >= 3);
}

#[test]
fn of_times_from_microseconds_to_hours() {
    for scale in [1e-6, 1e-3, 1.0, 1e3, 1e6] {
        let mut made = run(POLICIES[0], 1, 5.0, 2, 40);
        let mut scaled = cr_report::aggregate::Distribution::new();
        for pair in made.ttft_s.buckets.chunks_exact(2) {
            (0..pair[1]).for_each(|_| scaled.record(pair[0] as f64 * 1e-9 * scale));
        }
        made.ttft_s = SparseDistribution::from(&scaled);
        assert!(check(&format!("scale {scale}"), &of_runs(vec![made])) >= 3);
    }
}

#[test]
fn of_nothing_there_is_no_figure() {
    assert_eq!(check("none", &of_runs(Vec::new())), 0);
    let (head, _) = common::worked_example();
    let nothing = cr_report::RunReport::of(&cr_report::aggregate::Aggregator::new(&head), false);
    assert_eq!(check("nothing finished", &of_runs(vec![nothing])), 0);
}
