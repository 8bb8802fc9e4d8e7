#![no_main]
//! Fleet files: nothing that is accepted can break out of a configuration file.

use cr_routing::export::FleetFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(fleet) = FleetFile::from_toml(text, "fuzz") {
        let plain = |text: &str| !text.contains(char::is_whitespace);
        assert!(fleet.addresses().iter().all(|address| plain(address)) && plain(fleet.listen()));
    }
});
