//! Hub models, downloaded with a progress bar.

use cr_cli::{CommonArgs, InputContext, Progress};
use cr_engine::model::Hub;

/// Makes sure that a hub model is in the local cache; other models need nothing.
pub(crate) fn fetch(model: &str, common: &CommonArgs) -> anyhow::Result<()> {
    let mut bar: Option<(String, Progress)> = None;
    let fetched = Hub::from_env().fetch(model, &mut |at| {
        if bar.as_ref().is_none_or(|(file, _)| file != at.file) {
            if let Some((_, done)) = &bar {
                done.finish();
            }
            bar = Some((at.file.into(), Progress::new(common, at.file, "bytes", Some(at.total))));
        }
        if let Some((_, bar)) = &bar {
            bar.set(at.done);
        }
    });
    if let Some((_, bar)) = &bar {
        bar.finish();
    }
    fetched.bad_input()
}
