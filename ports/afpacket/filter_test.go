package afpacket

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// TestKilledFilter: without tcx, a port that was never closed leaves its program, which
// the next one replaces; that one leaves the qdisc, which it did not make. A port that
// finds none takes it away again.
func TestKilledFilter(t *testing.T) {
	node, _, first := pair(t, Options{older: true})
	count := func() (filters, qdiscs int) {
		sw0 := node.Link(t, "sw0")
		all, err := node.Links().FilterList(sw0, netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			t.Fatal(err)
		}
		queues, err := node.Links().QdiscList(sw0)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queues {
			if q.Type() == "clsact" {
				qdiscs++
			}
		}
		return len(all), qdiscs
	}
	want := func(when string, filters, qdiscs int) {
		t.Helper()
		if f, q := count(); f != filters || q != qdiscs {
			t.Errorf("%s: %d filters, %d qdiscs; want %d and %d", when, f, q, filters, qdiscs)
		}
	}
	want("first", 1, 1)
	second := openIn(t, node, Options{Interface: "sw0", older: true})
	want("both", 1, 1)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	want("after the second", 0, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	want("after the first", 0, 0)
}

// TestKilledTCX: a port that was never closed leaves its program, which the next one
// replaces, and takes away; the first then finds nothing of its own.
func TestKilledTCX(t *testing.T) {
	if err := CanForward(); err != nil {
		t.Skip(err)
	}
	node, _, first := pair(t, Options{})
	count := func() (n int) {
		node.Do(t, func() {
			there, err := link.QueryPrograms(link.QueryOptions{Target: node.Link(t, "sw0").Attrs().Index, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				t.Error(err)
				return
			}
			n = len(there.Programs)
		})
		return n
	}
	if n := count(); n != 1 {
		t.Fatalf("%d programs of one port", n)
	}
	second := openIn(t, node, Options{Interface: "sw0"})
	if n := count(); n != 1 {
		t.Errorf("%d programs after the second port", n)
	}
	if err := first.Close(); err != nil || count() != 1 {
		t.Errorf("the first took away the second's program: %d, %v", count(), err)
	}
	if err := second.Close(); err != nil || count() != 0 {
		t.Errorf("%d programs are left, %v", count(), err)
	}
}

// TestClean takes away what a killed process has left, and nothing of others.
func TestClean(t *testing.T) {
	for name, o := range map[string]Options{"tcx": {}, "filter": {older: true}} {
		t.Run(name, func(t *testing.T) { cleaned(t, o) })
	}
}

func cleaned(t *testing.T, o Options) {
	node, _, p := pair(t, o)
	nstest.AddVeth(t, node, "sw1", nstest.New(t), "eth0")
	if out, err := node.Command("tc", "qdisc", "add", "dev", "sw1", "clsact").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	clean := func() (told []string) {
		node.Do(t, func() {
			if err := Clean(func(what string) { told = append(told, what) }); err != nil {
				t.Error(err)
			}
		})
		return told
	}
	p.ingress.hook.keepProgram() // as when it is killed
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if told := clean(); !slices.Equal(told, []string{"removed program antrail_ingress of sw0"}) {
		t.Errorf("told %q", told)
	}
	if told := clean(); told != nil {
		t.Errorf("a second time, told %q", told)
	}
	out, err := node.Command("tc", "qdisc").CombinedOutput()
	if err != nil || strings.Contains(string(out), "clsact ffff: dev sw0") || !strings.Contains(string(out), "clsact ffff: dev sw1") {
		t.Errorf("%v: %s", err, out)
	}
}
