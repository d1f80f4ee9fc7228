//! Runs the real binary, and creates and reads captures without a library.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The document of the specification; it must always load.
pub const RED: &str = r##"apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  colour: "#d62728"
  plane: {kind: ipv4}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24]}
    - {name: right, port: p1, mac: "02:00:00:00:01:02", addresses: [10.2.0.1/24]}
  routes:
    - {to: 10.9.0.0/16, via: 10.2.0.2}
  neighbours:
    - {port: right, address: 10.2.0.2, mac: "02:00:00:00:0a:02"}
  weight: 1
  rate_limit: {packets_per_second: 100000, burst_packets: 1000}
"##;

/// A network of kind `ipv6`.
pub const SIX: &str = r#"apiVersion: hueplane/v1
kind: Network
metadata: {name: six}
spec:
  plane: {kind: ipv6}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:06:01", addresses: ["2001:db8:1::1/64"]}
    - {name: right, port: p1, mac: "02:00:00:00:06:02", addresses: ["2001:db8:2::1/64"]}
  routes:
    - {to: "2001:db8:9::/48", via: "2001:db8:2::2"}
  neighbours:
    - {port: right, address: "2001:db8:2::2", mac: "02:00:00:00:0a:02"}
"#;

/// An IPv6 packet with 8 bytes of payload.
pub fn ipv6(to: &str, hop_limit: u8, source: &str, destination: &str) -> Vec<u8> {
    let mac: Vec<u8> = to.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let mut frame = mac;
    frame.extend([2, 0, 0, 0, 0x0b, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 59, hop_limit]);
    frame.extend(address(source));
    frame.extend(address(destination));
    frame.extend([7; 8]);
    frame
}

/// The result of running the binary.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Checks that the run failed with `code`, that its message contains `text`, and that standard output is
    /// empty.
    #[track_caller]
    pub fn fails(&self, code: i32, text: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(text), "expected '{text}' in {}", self.stderr);
        assert_eq!(self.stdout, "", "nothing half-printed");
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }
}

/// A scratch directory in which commands run.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs `hueplane` with arguments separated by blanks in this directory.
    pub fn hueplane(&self, args: &str) -> Done {
        self.hueplane_with(&args.split_whitespace().collect::<Vec<_>>(), "")
    }

    pub fn hueplane_with(&self, args: &[&str], stdin: &str) -> Done {
        self.start(args, stdin, &[])
    }

    /// With additional environment variables.
    pub fn hueplane_env(&self, args: &str, variables: &[(&str, &str)]) -> Done {
        self.start(&args.split_whitespace().collect::<Vec<_>>(), "", variables)
    }

    /// With a limit on the address space.
    pub fn hueplane_within(&self, kib: u64, args: &str) -> Done {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("ulimit -v {kib} && exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_hueplane"),
        ]);
        self.finish(command.args(args.split_whitespace()), "", &[])
    }

    /// Another program, which finds hueplane in its PATH. No daemon is found, and only images in the folder `images`.
    pub fn program(&self, name: &str, args: &[&str]) -> Done {
        let here = Path::new(env!("CARGO_BIN_EXE_hueplane")).parent().unwrap();
        let path = format!("{}:{}", here.display(), std::env::var("PATH").unwrap());
        let (images, run) = (self.path("images"), self.path("run"));
        let variables = [
            ("PATH", path.as_str()),
            ("HUEPLANE_IMAGES", images.to_str().unwrap()),
            ("HUEPLANE_RUN_DIR", run.to_str().unwrap()),
        ];
        self.finish(Command::new(name).args(args), "", &variables)
    }

    fn start(&self, args: &[&str], stdin: &str, variables: &[(&str, &str)]) -> Done {
        self.finish(Command::new(env!("CARGO_BIN_EXE_hueplane")).args(args), stdin, variables)
    }

    fn finish(&self, command: &mut Command, stdin: &str, variables: &[(&str, &str)]) -> Done {
        let mut child = command
            .current_dir(self.0.path())
            .env_remove("CLICOLOR_FORCE")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let text = stdin.to_owned();
        // A command that fails early does not read all of it.
        let writer = std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
        let out = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let done = Done {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8(out.stdout).unwrap(),
            stderr: String::from_utf8(out.stderr).unwrap(),
        };
        assert!(!done.stderr.contains("panicked"), "{done:?}");
        done
    }

    /// Names of the files in a directory, sorted; empty if it does not exist.
    pub fn files(&self, dir: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(dir)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn packets(&self, name: &str) -> Vec<(u64, Vec<u8>)> {
        read_pcap(&fs::read(self.path(name)).unwrap())
    }
}

/// A little-endian pcap file. Times in nanoseconds are stored in microseconds unless `nano` is set.
pub fn pcap_of(packets: &[(u64, Vec<u8>)], nano: bool, link: u32) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(if nano { 0xa1b2_3c4du32 } else { 0xa1b2_c3d4 }.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(262_144u32.to_le_bytes());
    file.extend(link.to_le_bytes());
    for (time_ns, bytes) in packets {
        let rest = (time_ns % 1_000_000_000) as u32;
        let len = bytes.len() as u32;
        for field in [(time_ns / 1_000_000_000) as u32, if nano { rest } else { rest / 1000 }, len, len] {
            file.extend(field.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

pub fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    pcap_of(packets, false, 1)
}

/// The packets of a little-endian pcap file, times in nanoseconds.
pub fn read_pcap(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let unit = match word(0) {
        0xa1b2_3c4d => 1,
        0xa1b2_c3d4 => 1000,
        magic => panic!("magic {magic:#x}"),
    };
    assert_eq!((word(4), word(8), word(12), word(20)), (0x0004_0002, 0, 0, 1));
    let mut packets = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let time_ns = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * unit;
        let len = word(at + 8) as usize;
        assert_eq!(word(at + 12) as usize, len);
        packets.push((time_ns, file[at + 16..at + 16 + len].to_vec()));
        at += 16 + len;
    }
    packets
}

pub fn mac(text: &str) -> [u8; 6] {
    let bytes: Vec<u8> = text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// The checksum of a header whose checksum field is zero.
pub fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv4 frame with 8 bytes of payload.
pub fn ipv4(dst_mac: &str, ttl: u8, src: [u8; 4], dst: [u8; 4]) -> Vec<u8> {
    let mut frame = mac(dst_mac).to_vec();
    frame.extend(mac("02:00:00:00:0b:01"));
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, ttl, 17, 0, 0]);
    frame.extend(src);
    frame.extend(dst);
    frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
