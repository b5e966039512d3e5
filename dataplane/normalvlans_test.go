package dataplane_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// vlanPorts are ports of all kinds: what Open vSwitch's columns of Port have, and antrail's.
var vlanPorts = []struct {
	columns  string
	security l2.PortSecurity
}{
	1: {"tag=10", l2.PortSecurity{VLAN: 10}},
	2: {"tag=20 vlan_mode=access", l2.PortSecurity{VLAN: 20, VLANMode: l2.VLANAccess}},
	3: {"tag=0", l2.PortSecurity{VLANMode: l2.VLANAccess}},
	4: {"vlan_mode=trunk", l2.PortSecurity{VLANMode: l2.VLANTrunk}},
	5: {"trunks=10,30", l2.PortSecurity{Trunks: []uint16{10, 30}}},
	6: {"trunks=0,20", l2.PortSecurity{Trunks: []uint16{0, 20}}},
	7: {"tag=10 vlan_mode=native-tagged", l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANNativeTagged}},
	8: {"tag=10 trunks=0,20 vlan_mode=native-untagged", l2.PortSecurity{VLAN: 10, VLANMode: l2.VLANNativeUntagged, Trunks: []uint16{0, 20}}},
	9: {"trunks=20 vlan_mode=native-untagged", l2.PortSecurity{VLANMode: l2.VLANNativeUntagged, Trunks: []uint16{20}}},
}

// TestNormalVLANsAsOpenVSwitch floods frames with and without tags from ports of all kinds. Each
// leaves by the same ports as from Open vSwitch, with the same tag.
func TestNormalVLANsAsOpenVSwitch(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	r.check(r.sw.RemovePort(tunnelPort))
	var ports []ovstest.Port
	for no := 1; no < len(vlanPorts); no++ {
		ports = append(ports, ovstest.Port{Name: fmt.Sprintf("p%d", no), Number: no})
		if no > 4 {
			r.addPort(uint32(no), memory.Options{})
		}
		r.secure(uint32(no), vlanPorts[no].security)
	}
	ovs := ovstest.Start(t, ports...)
	ovsDo := func(_ string, err error) { t.Helper(); r.check(err) }
	ovsDo(ovs.Ofctl("add-flow", "actions=NORMAL"))
	for no := 1; no < len(vlanPorts); no++ {
		ovsDo(ovs.Vsctl(append([]string{"set", "port", fmt.Sprintf("p%d", no)}, strings.Fields(vlanPorts[no].columns)...)...))
	}
	ovsDo(ovs.Vsctl("set", "port", ovstest.Bridge, "tag=4094")) // it has no twin
	for no := 1; no < len(vlanPorts); no++ {
		for _, tag := range []string{"", ",dl_vlan=0,dl_vlan_pcp=5", ",dl_vlan=10,dl_vlan_pcp=3", ",dl_vlan=20", ",dl_vlan=30"} {
			text := ethernet(no, no, 0xff) + tag
			in, frame := r.compose(text)
			var words []string
			for _, s := range r.sendFrame(in, frame) {
				words = append(words, fmt.Sprintf("p%d:%s", s.port, tagText(packet.ParseLayers(s.frame).TCI)))
			}
			trace, err := ovs.Appctl("ofproto/trace", ovstest.Bridge, text, "--names")
			r.check(err)
			got, want := strings.Join(words, " "), strings.Join(tagsOfActions(trace, frame), " ")
			if got != want {
				t.Errorf("%s by the port with %s: %q, Open vSwitch %q", text, vlanPorts[no].columns, got, want)
			}
		}
	}
}

// tagText is a tag in short; "-" for none.
func tagText(tci uint16) string {
	if tci == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", tci&0xfff, tci>>13)
}

var vlanAction = regexp.MustCompile(`^(pop_vlan)$|^push_vlan\((?:tpid=\w+,)?vid=(\d+),pcp=(\d+)\)$|^(p\d)$`)

// tagsOfActions are the outputs of ofproto/trace for a frame, with the tag that the frame has then.
func tagsOfActions(trace string, frame []byte) (all []string) {
	_, actions, _ := strings.Cut(trace, "Datapath actions: ")
	tags := []string{}
	if tag := tagText(packet.ParseLayers(frame).TCI); tag != "-" {
		tags = append(tags, tag)
	}
	for _, word := range splitTop(strings.TrimSpace(actions)) {
		switch m := vlanAction.FindStringSubmatch(word); {
		case m == nil:
			if word != "drop" {
				all = append(all, "unknown:"+word)
			}
		case m[1] != "":
			tags = tags[:len(tags)-1]
		case m[2] != "":
			tags = append(tags, m[2]+"/"+m[3])
		default:
			all = append(all, m[4]+":"+slices.Concat([]string{"-"}, tags)[len(tags)])
		}
	}
	slices.Sort(all)
	return all
}

// TestVLANsOfPortsAreChecked: no port gets VLANs that no frame can have.
func TestVLANsOfPortsAreChecked(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	for _, s := range []l2.PortSecurity{{VLAN: 4095}, {Trunks: []uint16{1, 4095}}, {VLANMode: "dot1q-tunnel"}} {
		if err := r.sw.SecurePort(1, s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	if got := r.outcome(ethernet(1, 0xa, 0xff)); got != "2 3 4" {
		t.Errorf("then a broadcast goes to %q", got)
	}
}
