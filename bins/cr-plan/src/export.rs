//! A table as the configuration of a load balancer.

use crate::diff::last_table;
use clap::{Args, ValueEnum};
use cr_cli::{CommonArgs, Exit, InputContext, bad_input, input::read_to_string};
use cr_routing::export::{ExportedFile, FleetFile, haproxy, nginx};
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "\
The fleet file names real addresses, in order of shard:

  schema = \"cacheroute.fleet/1\"
  listen = \"0.0.0.0:8080\"
  key_header = \"x-cacheroute-key\"              # the request header that carries the key
  admin_socket = \"/run/haproxy/admin.sock\"     # HAProxy only: for updates at run time
  [[shards]]
  address = \"10.0.0.1:8000\"

Examples:
  cr-plan export table.json --to haproxy --fleet fleet.toml -o /etc/haproxy/cacheroute";

/// Write a table as the configuration of HAProxy or nginx
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ExportArgs {
    /// The table; of several, the last
    #[arg(value_name = "TABLE")]
    table: String,
    /// For which proxy
    #[arg(long, value_enum)]
    to: Proxy,
    /// Addresses of the shards, TOML
    #[arg(long, value_name = "FILE")]
    fleet: String,
    /// The folder to write into; the files refer to each other by it
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Proxy {
    /// HAProxy 2.4 or later
    Haproxy,
    /// nginx 1.15.1 or later
    Nginx,
}

pub(crate) fn run(args: &ExportArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let table = last_table(&args.table)?;
    let fleet = FleetFile::from_toml(&read_to_string(&args.fleet)?, &args.fleet).bad_input()?;
    let folder = folder(&args.output)?;
    let place = folder.to_str().filter(|path| !path.contains(char::is_whitespace));
    let place = place.ok_or_else(|| bad_input("the folder's path must be plain text without white space"))?;
    let files = match args.to {
        Proxy::Haproxy => haproxy(&table, &fleet, place),
        Proxy::Nginx => nginx(&table, &fleet, place),
    };
    for file in files.bad_input()? {
        write(&folder, &file)?;
        common.note(format!("wrote {}", folder.join(file.name).display()));
    }
    Ok(Exit::Done)
}

/// Makes the folder, and says where it really is.
fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    cr_cli::output::make_folder(path)?;
    Ok(path.canonicalize()?)
}

fn write(folder: &Path, file: &ExportedFile) -> anyhow::Result<()> {
    let path = folder.join(file.name);
    let failed = |e: std::io::Error| {
        bad_input(format!("cannot write {}: {}", path.display(), cr_cli::input::reason(&e)))
    };
    fs::write(&path, &file.text).map_err(failed)?;
    #[cfg(unix)]
    if file.executable {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(())
}
