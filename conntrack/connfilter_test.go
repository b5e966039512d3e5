package conntrack

import (
	"net/netip"
	"slices"
	"testing"
)

// TestFilter dumps one table through many filters.
func TestFilter(t *testing.T) {
	b := newBench(t, Config{})
	b.want(udpFrame(client, service, 1234, 53), commitNAT("dst=10.0.0.2:8053"), "new|trk|dnat")
	b.want(tcpFrame(client, server, 8053, 80, tcpText{flags: "S", seq: 1}), Request{Zone: 7, Commit: true, Mark: 0x11, MarkMask: 0xff}, "new|trk")
	b.want(echoFrame("10.0.0.9", server, 8, 8053), Request{Zone: 7, Commit: true}, "new|trk")
	b.want(udpFrame("fd00::1", "fd00::2", 53, 54), Request{Zone: 7, Commit: true}, "new|trk")
	zone := uint16(7)
	for name, s := range map[string]struct {
		f    Filter
		want []uint8 // protocols of what is taken
	}{
		"all":              {Filter{}, []uint8{1, 6, 17, 17}},
		"zone":             {Filter{Zone: &zone}, []uint8{1, 6, 17}},
		"address":          {Filter{Address: netip.MustParsePrefix("10.0.0.1/32")}, []uint8{6, 17}},
		"range":            {Filter{Address: netip.MustParsePrefix("10.0.0.8/29")}, []uint8{1}},
		"before NAT":       {Filter{Address: netip.MustParsePrefix("10.96.0.10/32")}, []uint8{17}},
		"after NAT":        {Filter{Address: netip.MustParsePrefix("10.0.0.2/32"), Port: 8053}, []uint8{6, 17}},
		"IPv6":             {Filter{Address: netip.MustParsePrefix("fd00::/64")}, []uint8{17}},
		"port, no echo id": {Filter{Port: 8053}, []uint8{6, 17}},
		"state":            {Filter{State: "SYN_SENT"}, []uint8{6}},
		"mark":             {Filter{Mark: 0x10, MarkMask: 0xf0}, []uint8{6}},
		"mark 0":           {Filter{MarkMask: 0xff}, []uint8{1, 17, 17}},
		"nothing":          {Filter{Zone: &zone, State: "ESTABLISHED"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint8
			for c := range b.Dump(s.f) {
				got = append(got, c.Orig.Proto)
			}
			if slices.Sort(got); !slices.Equal(got, s.want) {
				t.Errorf("protocols %v, want %v", got, s.want)
			}
		})
	}
}

// TestZoneCounts counts by zone, also where a limit is all there is.
func TestZoneCounts(t *testing.T) {
	b := newBench(t, Config{})
	b.SetDefaultLimit(9)
	b.SetLimit(3, 5)
	b.want(udpFrame(client, server, 1, 53), Request{Zone: 7, Commit: true}, "new|trk")
	b.want(udpFrame(client, server, 2, 53), Request{Zone: 7, Commit: true}, "new|trk")
	if got, want := b.Zones(), []ZoneLimit{{3, 5, 0}, {7, 9, 2}}; !slices.Equal(got, want) {
		t.Errorf("zones %v, want %v", got, want)
	}
}

// TestDropNames: every reason has a name of its own.
// TestPortCounts: a port's numbers are those of its own packets.
func TestPortCounts(t *testing.T) {
	b := newBench(t, Config{NewRate: 2})
	b.beginConnections(1, 4, false)
	b.beginConnections(2, 1, false)
	for i := range uint16(3) {
		if b.beginOne(1, 100+i); b.verdict.Drop != DropNewRate {
			t.Fatalf("verdict %+v", b.verdict)
		}
	}
	want := []PortStats{{Port: 1, Entries: 4, Refused: 3}, {Port: 2, Entries: 1}}
	if got := b.Ports(); !slices.Equal(got, want) {
		t.Errorf("ports %+v, want %+v", got, want)
	}
	b.Flush()
	if got := b.Ports(); !slices.Equal(got, []PortStats{{Port: 1, Refused: 3}}) {
		t.Errorf("after a flush: %+v", got)
	}
}

func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range numDropReasons {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		} else {
			seen[name] = true
		}
	}
}
