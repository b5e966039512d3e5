package ofserver

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/vswitchd/openflow"
)

// commit sends messages in one bundle, and commits it.
func (c *raw) commit(messages ...[]byte) {
	c.t.Helper()
	for _, m := range messages {
		c.write(bundleMessage(34, m[7], append([]byte{0, 0, 0, 7, 0, 0, 0, 3}, m...)...))
	}
	c.write(bundleMessage(33, 99, 0, 0, 0, 7, 0, 4, 0, 3))
	if b := c.next(); b[1] != 33 || b[13] != 5 {
		c.t.Fatalf("%x does not say that the bundle is committed", b)
	}
}

// TestBundleOfAddsIsInOrder: of two entries with one identity the later one stays, even if the
// bundle only adds. A deletion removes the entries that are there at its turn.
func TestBundleOfAddsIsInOrder(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	c.commit(flowMod(t, 1, "table=1,priority=3,ip,actions=output:1"), flowMod(t, 2, "table=1,priority=3,ip,actions=output:2"),
		flowMod(t, 3, "table=1,priority=4,ip,actions=conjunction(1,1/2)"), flowMod(t, 4, "table=1,priority=4,ip,actions=conjunction(2,1/2)"))
	c.commit(flowMod(t, 5, "table=2,ip,actions=output:1"), flowMod(t, 6, "table=2,arp,actions=output:1"), flowMod(t, 7, "table=2,ip,actions=output:2"))
	r.want("table=1, priority=4,ip actions=conjunction(2,1/2)", "table=1, priority=3,ip actions=output:2",
		"table=2, arp actions=output:1", "table=2, ip actions=output:2")
	c.commit(flowMod(t, 8, "table=3,ip,actions=drop"), deletion(t, 9, 2), flowMod(t, 10, "table=2,ip,actions=output:3"))
	r.want("table=1, priority=4,ip actions=conjunction(2,1/2)", "table=1, priority=3,ip actions=output:2",
		"table=2, ip actions=output:3", "table=3, ip actions=drop")
}

// deletion deletes the entries of a table.
func deletion(t *testing.T, xid uint32, table uint8) []byte {
	t.Helper()
	q := &openflow.FlowMod{Command: openflow.FlowDelete, OutPort: 0xffffffff, OutGroup: openflow.AnyGroup}
	q.Entry.Table = table
	b, err := openflow.Encode(openflow.Message{Version: openflow.V15, XID: xid, Body: q})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// want compares the entries of the switch.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	var have []string
	for _, f := range r.sw.Flows() {
		have = append(have, strings.TrimSpace(f.Entry.String()))
	}
	if got, want := strings.Join(have, "\n"), strings.Join(lines, "\n"); got != want {
		r.t.Errorf("the entries are\n%s\nwant\n%s", got, want)
	}
}

// TestAddedEntriesAllocate: an entry that waits for the commit of its bundle takes no object but
// its match and actions, and no more bytes than its message and its line.
func TestAddedEntriesAllocate(t *testing.T) {
	c, b := newConnection(&Server{}, nil, 0), &bundle{}
	c.bundles.open[7] = b
	messages := []openflow.BundleAdd{
		{ID: 7, Message: flowMod(t, 1, "table=17,priority=200,ip,nw_dst=10.0.0.1,actions=set_field:02:00:00:00:00:01->eth_dst,goto_table:19")},
		{ID: 7, Message: flowMod(t, 1, "table=12,priority=100,tcp,nw_src=10.0.0.1,tp_dst=80,actions=set_field:7->reg5,goto_table:14")},
	}
	n := testing.AllocsPerRun(1000, func() {
		for i := range messages {
			if err := c.bundleAdd(1, &messages[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n > 8 { // for each a match, a list of actions, what reads it, and a set_field
		t.Errorf("two entries take %v objects", n)
	}
	const size = (144 + 88 + 160 + 96) / 2
	if per := (b.messages.size + b.added.text.Size()) / 2002; per > size {
		t.Errorf("an entry takes %d bytes, at most %d expected", per, size)
	}
}
