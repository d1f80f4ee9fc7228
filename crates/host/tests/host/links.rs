//! Interfaces, verified with `ip` and `bridge`.

use std::process::Command;
use std::time::Duration;

use crate::common::{Names, ip, root};
use hue_host::ethtool::{self, Feature};
use hue_host::links::{LinkEvent, Links, Watch};
use hue_host::{HostError, netns};
use hue_wire::Mac;
use nix::errno::Errno;

#[test]
fn a_pair_of_links() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (here, there) = (names.namespace("here"), names.namespace("there"));
    let mut links = Links::inside(&here).unwrap();
    let mut others = Links::inside(&there).unwrap();
    links.create_veth("left", "right", Some(&there)).unwrap();
    let error = links.create_veth("left", "right2", None).unwrap_err();
    assert_eq!(error.errno(), Some(Errno::EEXIST), "{error}");
    assert!(links.find("right").unwrap().is_none());
    let right = others.get("right").unwrap();
    assert_eq!((right.kind.as_deref(), right.up, right.carrier), (Some("veth"), false, false));

    let mac = Mac([2, 0, 0, 0, 0, 9]);
    links.set_mac("left", mac).unwrap();
    links.set_mtu("left", 1400).unwrap();
    links.set_alias("left", "for a test").unwrap();
    links.set_up("left", true).unwrap();
    links.set_up("left", true).unwrap();
    others.set_up("right", true).unwrap();
    let left = links.get("left").unwrap();
    assert_eq!((left.mac, left.mtu, left.up, left.carrier), (Some(mac), 1400, true, true));
    assert_eq!((left.alias.as_deref(), left.peer), (Some("for a test"), Some(right.index)));
    assert!(ip(&here, "link show left").contains("mtu 1400"));
    assert!(ip(&here, "link show left").contains("02:00:00:00:00:09"));
    links.set_alias("left", "").unwrap();
    assert_eq!(links.get("left").unwrap().alias, None);

    links.set_up("left", false).unwrap();
    links.rename("left", "renamed").unwrap();
    links.move_to("renamed", &there).unwrap();
    assert_eq!(others.list().unwrap().len(), 3);
    assert!(others.delete("renamed").unwrap());
    assert!(!others.delete("renamed").unwrap(), "a second delete has no effect");
    assert_eq!(others.list().unwrap().len(), 1, "both ends are deleted together");
    let error = links.set_up("gone", true).unwrap_err();
    assert!(
        matches!(&error, HostError::NoInterface { name, namespace: Some(_) } if name == "gone"),
        "{error}"
    );
    assert!(error.is_missing());
    for name in ["", "0123456789abcdef", "a/b", "a b", "a:b", ".", ".."] {
        assert!(matches!(links.find(name), Err(HostError::InterfaceName(_))), "{name:?}");
    }
}

#[test]
fn isolated_ports_of_a_bridge() {
    if !root() {
        return;
    }
    let names = Names::new();
    let here = names.namespace("bridge");
    let mut links = Links::inside(&here).unwrap();
    links.create_bridge("br0").unwrap();
    links.create_veth("a0", "a1", None).unwrap();
    links.set_master("a0", Some("br0")).unwrap();
    links.set_isolated("a0", true).unwrap();
    assert_eq!(links.get("a0").unwrap().master, Some(links.index_of("br0").unwrap()));
    let shown = |namespace: &str| {
        let output = Command::new("bridge").args(["-d", "-n", namespace, "link", "show"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(shown(here.name()).contains("isolated on"), "{}", shown(here.name()));
    links.set_isolated("a0", false).unwrap();
    assert!(shown(here.name()).contains("isolated off"));
    links.set_master("a0", None).unwrap();
    assert_eq!(links.get("a0").unwrap().master, None);
    let error = links.set_isolated("a0", true).unwrap_err();
    assert!(error.to_string().contains("isolate bridge port a0"), "{error}");
}

#[test]
fn changes_of_links_are_reported() {
    if !root() {
        return;
    }
    let names = Names::new();
    let here = names.namespace("watch");
    let (mut watch, at_first) = Watch::inside(&here).unwrap();
    assert_eq!(at_first.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["lo"]);
    assert!(watch.next(Duration::ZERO).unwrap().is_empty());
    let mut links = Links::inside(&here).unwrap();
    links.create_veth("w0", "w1", None).unwrap();
    links.set_up("w0", true).unwrap();
    links.set_up("w1", true).unwrap();
    // The kernel detects carrier in the background.
    wait_for(
        &mut watch,
        |event| matches!(event, LinkEvent::Present(link) if link.name == "w0" && link.carrier),
    );
    links.delete("w0").unwrap();
    wait_for(&mut watch, |event| matches!(event, LinkEvent::Gone(link) if link.name == "w0"));
}

fn wait_for(watch: &mut Watch, wanted: impl Fn(&LinkEvent) -> bool) {
    let mut seen = Vec::new();
    loop {
        let more = watch.next(Duration::from_secs(30)).unwrap();
        assert!(!more.is_empty(), "no more after {seen:?}");
        seen.extend(more);
        if seen.iter().any(&wanted) {
            return;
        }
    }
}

#[test]
fn offloads_are_switched() {
    if !root() {
        return;
    }
    let names = Names::new();
    let here = names.namespace("ethtool");
    Links::inside(&here).unwrap().create_veth("e0", "e1", None).unwrap();
    here.run(|| {
        assert!(ethtool::get("e0", Feature::TransmitChecksum).unwrap());
        assert!(ethtool::get("e0", Feature::Segmentation).unwrap());
        ethtool::set_tx_checksum("e0", false).unwrap();
        ethtool::set_tx_checksum("e0", false).unwrap();
        assert!(!ethtool::get("e0", Feature::TransmitChecksum).unwrap());
        assert!(!ethtool::get("e0", Feature::Segmentation).unwrap(), "needs checksums");
        ethtool::set_tx_checksum("e0", true).unwrap();
        assert!(ethtool::get("e0", Feature::TransmitChecksum).unwrap());
        assert!(ethtool::channels("e0").unwrap().receiving() >= 1);
        let error = ethtool::set_tx_checksum("gone", false).unwrap_err();
        assert!(matches!(error, HostError::NoInterface { .. }), "{error}");
    })
    .unwrap();
}

#[test]
fn links_are_deleted_together_and_others_stay() {
    if !root() {
        return;
    }
    let names = Names::new();
    let here = names.namespace("here");
    let mut links = Links::inside(&here).unwrap();
    for pair in [["a0", "a1"], ["b0", "b1"], ["c0", "c1"]] {
        links.create_veth(pair[0], pair[1], None).unwrap();
    }
    links.delete_together(&["a0", "gone", "b1"]).unwrap();
    let left: Vec<String> = links.list().unwrap().into_iter().map(|link| link.name).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(["lo", "c0", "c1"].iter().all(|name| left.iter().any(|link| link == name)), "{left:?}");
    links.delete_together(&["a0", "gone"]).unwrap();
    links.delete_together(&[]).unwrap();
    assert_eq!(links.list().unwrap().len(), 3, "only these were deleted");
    assert!(links.delete_together(&["no/name"]).is_err());
}

#[test]
fn links_end_with_their_namespace() {
    if !root() {
        return;
    }
    let names = Names::new();
    let here = names.namespace("here");
    let name = names.name("there");
    let mut links = Links::inside(&here).unwrap();
    {
        let there = hue_host::Namespace::create(&name).unwrap();
        links.create_veth("c0", "c1", Some(&there)).unwrap();
        netns::delete(&name).unwrap();
        // The open handle keeps the namespace alive.
        assert!(links.find("c0").unwrap().is_some());
    }
    // It ends in the background.
    let gone = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        links.find("c0").unwrap().is_none()
    });
    assert!(gone);
}
