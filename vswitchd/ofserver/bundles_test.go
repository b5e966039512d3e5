package ofserver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// TestBundlesAsOpenVSwitch sends the same messages to antrail and to Open vSwitch, with and
// without mistakes. Both give the same answers, and have the same entries at the end.
func TestBundlesAsOpenVSwitch(t *testing.T) {
	const open, closes, commits, discards = 0, 2, 4, 6 // OFPBCT_*
	control := func(xid, step, flags byte) []byte {
		return bundleMessage(33, xid, 0, 0, 0, 7, 0, step, 0, flags)
	}
	add := func(xid, flags byte, m []byte) []byte {
		return bundleMessage(34, xid, append([]byte{0, 0, 0, 7, 0, 0, 0, flags}, m...)...)
	}
	entry := func(xid byte, priority int) []byte {
		return flowMod(t, uint32(xid), fmt.Sprintf("table=1,priority=%d,ip,actions=output:1", priority))
	}
	unread := entry(3, 1)
	unread[25] = 99 // no such command
	barrier := bundleMessage(20, 3)
	bundles := [][][]byte{
		{control(1, open, 3), add(2, 3, entry(2, 10)), add(3, 3, unread), add(4, 3, entry(4, 11)), control(5, commits, 3)},
		{control(1, open, 3), add(2, 3, entry(2, 20)), add(3, 3, barrier), control(4, closes, 3), control(5, commits, 3)},
		{control(1, open, 3), add(3, 3, barrier), control(4, discards, 3)},
		{control(1, open, 3), add(2, 3, entry(2, 30)), add(3, 3, unread), control(4, discards, 3), control(5, discards, 3)},
		{control(1, open, 3), add(2, 3, entry(9, 40)), control(5, commits, 3)}, // another transaction inside
		{add(3, 3, unread), control(4, discards, 3)},                           // a refused message opens no bundle
		{add(2, 3, entry(2, 50)), control(5, commits, 3)},
		{control(1, open, 3), add(2, 3, entry(2, 60)), add(3, 1, entry(3, 61)), control(4, discards, 3)},
		{control(1, open, 3), add(3, 1, unread), control(4, discards, 3)},
		{control(1, open, 3), control(2, closes, 3), add(3, 3, entry(3, 70)), control(4, discards, 3)},
		{control(1, open, 3), control(2, closes, 3), add(3, 3, unread), control(4, discards, 3)},
		{control(1, open, 3), control(2, open, 3), control(4, discards, 3)},
		{control(1, open, 3), control(2, closes, 3), control(3, closes, 3), control(4, discards, 3)},
		{control(1, open, 3), control(2, closes, 1), control(4, discards, 3)},
		{control(1, open, 3), control(2, commits, 1), control(4, discards, 3)},
	}
	ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1})
	r := newRig(t)
	ours, theirs := r.connect(t, openflow.V15), connectIn(t, ovs.Dir, openflow.V15)
	for i, messages := range bundles {
		for _, m := range messages {
			if got, want := ours.answers(m), theirs.answers(m); !slices.Equal(got, want) {
				t.Errorf("bundle %d, message %d: %s, on Open vSwitch %s", i, m[7], got, want)
			}
		}
	}
	dump := step{"", "--no-stats", "dump-flows", nil}
	wantSame(t, "15", &dump, r.dir, ovs.Dir)
}

// answers are the types, transactions and errors of the answers to a message.
func (c *raw) answers(m []byte) (all []string) {
	c.t.Helper()
	c.write(m)
	c.write(bundleMessage(2, 99)) // echo
	for {
		b := c.next()
		switch {
		case b[1] == 3 && b[7] == 99:
			return all
		case b[1] == 1: // OFPT_ERROR
			all = append(all, fmt.Sprintf("error %d of type %d for %d", b[11], b[9], b[7]))
		default:
			all = append(all, fmt.Sprintf("message %d for %d", b[1], b[7]))
		}
	}
}
