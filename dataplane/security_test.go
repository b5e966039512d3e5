package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// station is the MAC address 02:00:00:00:00:xx.
func station(last byte) [6]byte { return [6]byte{2, 5: last} }

// guarded is the security of a pod's port whose station has this last byte.
func guarded(last byte) l2.PortSecurity {
	return l2.PortSecurity{MACs: []packet.MAC{station(last)}, Enforced: true}
}

// arpFrom is an ARP request whose Ethernet source is one station's, and whose
// sender is another's.
func arpFrom(ethernet, sender byte) []byte {
	b := pt.ARPRequest(pt.Options{EthSrc: station(sender), EthDst: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}})
	mac := station(ethernet)
	copy(b[6:], mac[:])
	return b
}

// TestForeignMAC: two ARP requests with the MAC of the gateway, or of another pod, as
// their Ethernet source move neither to the pod that sends them.
func TestForeignMAC(t *testing.T) {
	const gateway, other, pod = 1, 2, 3
	for _, victim := range []byte{gateway, other} {
		r := newRig(t, "table=0 actions=NORMAL")
		r.secure(gateway, l2.PortSecurity{MACs: []packet.MAC{station(gateway)}})
		r.secure(other, guarded(other))
		r.secure(pod, guarded(pod))
		for _, no := range []byte{gateway, other, pod} { // all are known
			r.sendFrame(uint32(no), arpFrom(no, no))
		}
		for range 2 {
			if got := r.outcomeOf(pod, arpFrom(victim, pod)); got != "drop foreign_mac in 0" {
				t.Errorf("ARP with the MAC of port %d: %q", victim, got)
			}
		}
		if got, want := r.outcome(ethernet(4, 9, int(victim))), fmt.Sprint(victim); got != want {
			t.Errorf("a frame for port %d then went to %q", victim, got)
		}
	}
}

// TestOwnMACIsLearnedAtNoOtherPort: a port without security sends with a MAC that is
// configured on another port. The frame passes, and the switch learns nothing of it.
func TestOwnMACIsLearnedAtNoOtherPort(t *testing.T) {
	r := newRig(t, "table=0 actions=NORMAL")
	r.sendFrame(4, arpFrom(1, 1)) // learned before it is configured
	r.secure(1, guarded(1))
	if all := r.sw.LearnedMACs(); len(all) != 0 {
		t.Errorf("still learned: %+v", all)
	}
	if got := r.outcomeOf(4, arpFrom(1, 1)); got != "1 2 3" {
		t.Errorf("the broadcast went to %q", got)
	}
	if got := r.macsOf(4); got != (telemetry.MACStats{Foreign: 1}) {
		t.Errorf("port 4 has %+v", got)
	}
	if got := r.outcome(ethernet(3, 9, 1)); got != "1" {
		t.Errorf("a frame for the MAC went to %q", got)
	}
	if got := r.outcome(ethernet(1, 1, 9)); got != "3" {
		t.Errorf("an answer went to %q", got)
	}
	r.check(r.sw.RemovePort(1))
	r.sendFrame(4, arpFrom(1, 1)) // no port has the address any more
	if got := r.outcome(ethernet(3, 9, 1)); got != "4" {
		t.Errorf("after its port was removed, a frame for the MAC went to %q", got)
	}
}

// TestSecurityAndCache: a connection's packets, first by a walk and then by what the
// cache remembers, pass and drop by the security that their port has at the time.
func TestSecurityAndCache(t *testing.T) {
	const flows = "table=0,udp actions=ct(zone=7,table=1)\ntable=1,udp,ct_state=+new actions=ct(commit,zone=7),output:2\ntable=1,udp actions=output:2"
	r := newRemembering(t, flows, conntrack.Config{}, dataplane.Config{Cache: walktest.Cache()})
	own := pt.UDP4(pt.Options{EthSrc: station(1)})
	for _, step := range []struct {
		security l2.PortSecurity
		want     string
	}{
		{l2.PortSecurity{}, "2"},
		{guarded(1), "2"},
		{guarded(9), "drop foreign_mac in 0"},
		{l2.PortSecurity{MACs: []packet.MAC{station(9)}}, "2"},
		{guarded(9), "drop foreign_mac in 0"},
		{guarded(1), "2"},
	} {
		r.secure(1, step.security)
		for i := range 5 {
			if got := r.outcomeOf(1, own); got != step.want {
				t.Fatalf("%+v, packet %d: %q, want %q", step.security, i, got, step.want)
			}
			traced := "2"
			if reason := r.trace(1, own).Verdict.Reason; reason != telemetry.NotDropped {
				traced = fmt.Sprintf("drop %s in 0", reason)
			}
			if traced != step.want {
				t.Fatalf("%+v: a trace says %q, want %q", step.security, traced, step.want)
			}
		}
	}
	if s := r.sw.Cache(); !*walktest.All && s.Events[telemetry.CacheHit] == 0 {
		t.Error("no packet was replayed")
	}
}

// TestSecurityWatched: a live trace of a packet that port security drops shows the drop.
func TestSecurityWatched(t *testing.T) {
	r := newRig(t, "table=1 actions=output:2")
	r.secure(1, guarded(9))
	l, err := r.sw.TraceLive(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return true }})
	r.check(err)
	defer l.Close()
	r.sendFrame(1, pt.UDP4(pt.Options{EthSrc: station(1)}))
	w, err := l.Next(t.Context())
	r.check(err)
	if got, want := w.Verdict.Text(nil), "dropped before the first table (foreign_mac): "+telemetry.DropForeignMAC.Sentence(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPacketOutsAreNotChecked: the controller may send with any address.
func TestPacketOutsAreNotChecked(t *testing.T) {
	r := newRig(t, "table=0 actions=drop")
	r.secure(1, guarded(9))
	r.check(r.sw.PacketOut(1, []flow.Action{flow.Output{Port: 2}}, pt.UDP4(pt.Options{EthSrc: station(1)})))
	r.wantPorts(r.collect(), 2)
}

// TestSecureNoPort: there is nothing to secure under a number without a port.
func TestSecureNoPort(t *testing.T) {
	r := newRig(t, "table=0 actions=drop")
	for _, err := range []error{
		r.sw.SecurePort(1, l2.PortSecurity{VLAN: 4095}),
		r.sw.AddSecuredPort(60, memory.New("p60", memory.Options{}), l2.PortSecurity{VLAN: 4095}),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), "vlan: 4095 is more than 4094") {
			t.Errorf("VLAN 4095: %v", err)
		}
	}
	if err := r.sw.SecurePort(77, guarded(1)); err == nil || err.Error() != "there is no port 77" {
		t.Errorf("%v", err)
	}
}
