//! The report as one page: self-contained, well-formed, and laid out by a real browser where there is one.
#![allow(clippy::print_stderr)] // a skipped test says so

mod common;

use common::suite::suite;
use cr_report::svg::FIGURES;
use cr_report::{write_html, write_report};
use std::path::{Path, PathBuf};
use std::process::Command;

fn page(dir: &Path) -> (PathBuf, String) {
    let mut made = suite(&[5.0, 30.0, 80.0], 2, 4, 150);
    made.slo.ttft_p99_s = Some(0.3);
    made.ablation = vec!["flat".into(), "cacheroute".into()];
    made.title = "A <title> & \"more\"".into();
    write_report(dir, &made).expect("a report");
    let path = write_html(dir).expect("a page");
    let text = std::fs::read_to_string(&path).expect("text");
    (path, text)
}

/// The figures of the report: all but those that only a regime map or a sensitivity has.
fn drawn(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let count = files.filter(|path| path.extension().is_some_and(|e| e == "svg")).count();
    assert_eq!(count, FIGURES.len() - 2);
    count
}

#[test]
fn a_page_needs_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, text) = page(dir.path());
    assert!(path.ends_with("report.html"));
    assert_eq!(text.matches("<svg ").count(), drawn(dir.path()));
    assert!(text.contains("<title>A &lt;title&gt; &amp; &quot;more&quot;</title>"));
    for outside in ["<img", "<script", "<link", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "{outside} in the page");
    }
    let links = text.matches("http").count() - text.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(links, 0, "nothing is fetched");
    assert!(
        text.contains("<table>")
            && text.contains("<pre><code class=\"language-sh\">")
            && text.contains("<details>")
    );
    assert_eq!(page(tempfile::tempdir().expect("a folder").path()).1, text, "the same bytes");
}

/// A Chromium, from `CR_CHROMIUM` or from the path.
fn chromium() -> Option<String> {
    let named = std::env::var("CR_CHROMIUM").ok();
    let names = named.into_iter().chain(["chromium", "chromium-browser", "google-chrome"].map(String::from));
    names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|run| run.status.success()))
}

/// Measures the page as it is laid out, and leaves what it found in the document.
const PROBE: &str = "<script>
const boxes = [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect());
const texts = [...document.querySelectorAll('svg')].flatMap(s => {
  const all = [...s.querySelectorAll('text')].map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
  const sheet = s.getBoundingClientRect();
  const out = all.filter(([, b]) => b.left < sheet.left - 1 || b.right > sheet.right + 1 || b.top < sheet.top - 1 || b.bottom > sheet.bottom + 1);
  const over = all.flatMap(([x, a], i) => all.slice(i + 1).filter(([, b]) =>
    a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom).map(([y]) => x + ' / ' + y));
  return out.map(([x]) => 'out: ' + x).concat(over.map(x => 'over: ' + x));
});
document.body.setAttribute('data-probe', JSON.stringify({
  figures: boxes.filter(b => b.width > 300 && b.height > 100).length,
  wide: document.documentElement.scrollWidth > window.innerWidth,
  texts, rows: document.querySelectorAll('tbody tr').length
}));
</script>";

#[test]
fn a_real_browser_lays_it_out() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no chromium on the path and CR_CHROMIUM is unset");
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let (path, text) = page(dir.path());
    let probed = dir.path().join("probed.html");
    std::fs::write(&probed, text.replace("</body>", &format!("{PROBE}</body>"))).expect("written");
    for width in [1280, 700] {
        let run = Command::new(&chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
            .arg(format!("--window-size={width},900"))
            .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
            .arg(format!("file://{}", probed.display()))
            .output()
            .expect("a browser");
        let dom = String::from_utf8_lossy(&run.stdout);
        let start = dom.find("data-probe=\"").map(|at| at + 12);
        let probe = start.and_then(|at| dom[at..].split('"').next()).unwrap_or_else(|| {
            panic!("no probe in the page as {chromium} shows it: {}", String::from_utf8_lossy(&run.stderr))
        });
        let probe: serde_json::Value =
            serde_json::from_str(&probe.replace("&quot;", "\"").replace("&amp;", "&")).expect("JSON");
        assert_eq!(probe["figures"], drawn(dir.path()), "at {width}: every figure has a size");
        assert_eq!(
            probe["texts"],
            serde_json::json!([]),
            "at {width}: texts within their figures, none over another"
        );
        assert_eq!(probe["wide"], false, "at {width}: the page does not scroll sideways");
        assert!(probe["rows"].as_u64().expect("a number") >= 18, "at {width}");
    }
    if let Ok(keep) = std::env::var("CR_KEEP_REPORT") {
        std::fs::copy(path, Path::new(&keep).join("report.html")).expect("kept");
    }
}
