//! Named namespaces, verified with `ip netns`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Names, root};
use hue_host::links::Links;
use hue_host::{HostError, Namespace, exec, netns, sysctl};

#[test]
fn namespaces_are_created_found_and_deleted() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (one, two) = (names.name("one"), names.name("two"));
    assert!(!netns::exists(&one));
    assert!(matches!(Namespace::open(&one), Err(HostError::NoNamespace(name)) if name == one));
    let first = Namespace::create(&one).unwrap();
    let (again, created) = Namespace::create_with(&one, || panic!("it exists already")).unwrap();
    assert!(!created);
    assert_eq!(first.identity().unwrap(), again.identity().unwrap());
    let second = Namespace::create(&two).unwrap();
    assert_ne!(first.identity().unwrap(), second.identity().unwrap());
    assert_ne!(first.identity().unwrap(), Namespace::own().unwrap().identity().unwrap());
    assert_eq!(netns::list(&names.start).unwrap(), [one.clone(), two.clone()]);

    let shown = Command::new("ip").args(["netns", "list"]).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains(&one));
    let deleted = Command::new("ip").args(["netns", "delete", &two]).status().unwrap();
    assert!(deleted.success());
    assert!(!netns::exists(&two));
    // An open handle keeps the namespace itself alive.
    assert_eq!(second.run(|| Links::here().unwrap().list().unwrap().len()).unwrap(), 1);
    assert!(netns::delete(&one).unwrap());
    assert!(!netns::delete(&one).unwrap(), "a second delete has no effect");
    // A namespace created by `ip` is also recognised.
    assert!(Command::new("ip").args(["netns", "add", &two]).status().unwrap().success());
    assert!(!Namespace::create_with(&two, || Ok(())).unwrap().1);
}

#[test]
fn remains_of_a_killed_run_do_no_harm() {
    if !root() {
        return;
    }
    let names = Names::new();
    let name = names.name("left");
    let path = Path::new(netns::FOLDER).join(&name);
    fs::create_dir_all(netns::FOLDER).unwrap();
    // The file was created, but not the mount.
    fs::write(&path, "").unwrap();
    assert!(!netns::exists(&name));
    assert!(netns::list(&names.start).unwrap().is_empty());
    assert!(Namespace::create_with(&name, || Ok(())).unwrap().1);
    assert!(netns::exists(&name));
    netns::delete(&name).unwrap();
    fs::write(&path, "").unwrap();
    assert!(netns::delete(&name).unwrap());
    // A sweep removes such files, and neither namespaces nor what others are making.
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let (other, whole) = (names.name("other"), names.name("whole"));
    fs::write(Path::new(netns::FOLDER).join(&other), "").unwrap();
    let _whole = Namespace::create(&whole).unwrap();
    assert_eq!(netns::sweep(&names.start).unwrap(), [name.as_str()]);
    assert!(!path.exists() && netns::exists(&whole));
    assert!(netns::delete(&other).unwrap());
    assert!(!path.exists());
    // Preparation failed: there is no name.
    let failed = Namespace::create_with(&name, || Err(HostError::NoController("this test")));
    assert!(matches!(failed, Err(HostError::NoController(_))));
    assert!(!path.exists());
}

#[test]
fn invalid_names_are_rejected() {
    for name in ["", ".", "..", "a/b", "a b", "a\0", &"x".repeat(201)] {
        assert!(matches!(Namespace::create(name), Err(HostError::NamespaceName(_))), "{name:?}");
        assert!(matches!(netns::delete(name), Err(HostError::NamespaceName(_))), "{name:?}");
    }
}

#[test]
fn concurrent_creation_of_one_namespace() {
    if !root() {
        return;
    }
    let names = Names::new();
    let name = names.name("race");
    let created: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Namespace::create_with(&name, || Ok(())).unwrap().1)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(created, 1);
}

#[test]
fn settings_belong_to_one_namespace() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (one, two) = (names.namespace("one"), names.namespace("two"));
    let key = "net/ipv4/ip_forward";
    assert!(sysctl::set(&one, key, "1").unwrap() || sysctl::get(&one, key).unwrap().unwrap() == "1");
    assert!(!sysctl::set(&one, key, "1").unwrap(), "it is already set");
    sysctl::set(&two, key, "0").unwrap();
    assert_eq!(sysctl::get(&one, key).unwrap().unwrap(), "1");
    assert_eq!(sysctl::get(&two, key).unwrap().unwrap(), "0");
    assert_eq!(sysctl::get(&one, "net/ipv4/no_such").unwrap(), None);
    let error = sysctl::set(&one, "net/ipv4/no_such", "1").unwrap_err();
    assert!(error.is_missing() || error.is_denied(), "{error}");
    one.run(|| {
        let key = "net/ipv4/igmp_max_memberships";
        sysctl::set_here(key, "20").unwrap();
        assert!(!sysctl::raise_here(key, 10).unwrap());
        assert!(sysctl::raise_here(key, 30).unwrap());
        assert_eq!(sysctl::get_here(key).unwrap().unwrap(), "30");
    })
    .unwrap();
}

#[test]
fn commands_run_inside() {
    if !root() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("exec");
    Links::inside(&namespace).unwrap().create_veth("inside0", "inside1", None).unwrap();
    // It sees its own links by netlink and in /sys, and the mounts of this process are unchanged.
    let before = fs::read_dir("/sys/class/net").unwrap().count();
    let mut command = exec::command(&namespace, None, "sh").unwrap();
    let output = command.args(["-c", "ls /sys/class/net; ip -br link | wc -l"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.split_ascii_whitespace().collect::<Vec<_>>(), ["inside0", "inside1", "lo", "3"]);
    assert_eq!(fs::read_dir("/sys/class/net").unwrap().count(), before);

    let mut child = exec::spawn(&namespace, None, &["sh".into(), "-c".into(), "exit 7".into()]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let error = exec::spawn(&namespace, None, &["no-such-command".into()]).unwrap_err();
    assert!(error.to_string().starts_with("run no-such-command: "), "{error}");
    assert!(error.is_missing());
    assert!(exec::spawn(&namespace, None, &[]).is_err());
    assert!(exec::run_here(&namespace, None, &[]).to_string().contains("no command"));
}

#[test]
fn a_panic_inside_reaches_the_caller() {
    if !root() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("panic");
    let before = Namespace::own().unwrap().identity().unwrap();
    let panic = std::panic::catch_unwind(|| namespace.run(|| panic!("inside"))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"inside"));
    assert_eq!(Namespace::own().unwrap().identity().unwrap(), before, "this thread stayed in its namespace");
}

/// Replacing a process by a command: this program starts itself, and the copy becomes a shell.
#[test]
fn a_program_becomes_a_command_inside() {
    const NAME: &str = "HUEPLANE_TEST_BECOME";
    if let Ok(name) = std::env::var(NAME) {
        let namespace = Namespace::open(&name).unwrap();
        let error =
            exec::run_here(&namespace, None, &["sh".into(), "-c".into(), "ip -o link; exit 9".into()]);
        panic!("{error}");
    }
    if !root() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("become");
    Links::inside(&namespace).unwrap().create_bridge("only-here").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "netns::a_program_becomes_a_command_inside", "--nocapture"])
        .env(NAME, namespace.name())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap().contains("only-here"));
}

/// Files for one namespace replace those in /etc, as with `ip netns exec`.
#[test]
fn files_of_the_namespace_replace_those_in_etc() {
    if !root() || !Path::new("/etc/hosts").exists() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("etc");
    let folder = Path::new("/etc/netns").join(namespace.name());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("hosts"), "192.0.2.1 only-here\n").unwrap();
    let output = exec::command(&namespace, None, "cat").unwrap().arg("/etc/hosts").output();
    fs::remove_dir_all(&folder).unwrap();
    fs::remove_dir(folder.parent().unwrap()).ok();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "192.0.2.1 only-here\n");
    assert!(!fs::read_to_string("/etc/hosts").unwrap().contains("only-here"));
}
