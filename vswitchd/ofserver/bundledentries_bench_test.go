package ofserver

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// benchmarkedEntries is how many entries a bundle of the benchmark has.
const benchmarkedEntries = 100_000

// BenchmarkBundle is the way of a hundred thousand entries from a controller's socket into the
// switch, as hack/antrea/bundle has them.
func BenchmarkBundle(b *testing.B) {
	messages := bundleMessages(b, benchmarkedEntries)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := newRig(b)
		peer, err := net.Dial("unix", filepath.Join(r.dir, bridge+".mgmt"))
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		sendBundle(b, peer, messages)
		b.StopTimer()
		peer.Close()
		if n := len(r.sw.Flows()); n != benchmarkedEntries {
			b.Fatalf("%d entries", n)
		}
		b.StartTimer()
	}
}

// bundleMessages are n flow mods of pods and of rules in a bundle of OpenFlow 1.5.
func bundleMessages(t testing.TB, n int) (all []byte) {
	t.Helper()
	all = append(all, 6, 0, 0, 8, 0, 0, 0, 1) // hello
	for i := range n {
		a := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		line := fmt.Sprintf("table=12,priority=%d,tcp,nw_src=%s,tp_dst=%d,actions=set_field:%d->reg5,goto_table:14", 100+i%97, a, 1+i%9000, i)
		if i%2 == 1 {
			line = fmt.Sprintf("table=17,priority=200,ip,nw_dst=%s,actions=set_field:02:00:00:00:00:01->eth_dst,goto_table:19", a)
		}
		e, err := parse.Entry(line, nil)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := openflow.Encode(openflow.Message{Version: openflow.V15, XID: uint32(i), Body: &openflow.FlowMod{Entry: *e, OutPort: 0xffffffff, OutGroup: openflow.AnyGroup}})
		if err != nil {
			t.Fatal(err)
		}
		size := 16 + len(mod)
		all = append(all, 6, 34, byte(size>>8), byte(size), 0, 0, 0, byte(i))
		all = append(append(all, 0, 0, 0, 7, 0, 0, 0, 3), mod...)
	}
	return append(all, 6, 33, 0, 16, 0, 0, 0, 9, 0, 0, 0, 7, 0, 4, 0, 3) // commit
}

// sendBundle sends the messages of a bundle, and waits for the answer to its commit.
func sendBundle(t testing.TB, peer net.Conn, messages []byte) {
	t.Helper()
	if _, err := peer.Write(messages); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := openflow.Read(peer, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch m[1] {
		case 1:
			t.Fatalf("refused: %x", m)
		case 33:
			return
		}
	}
}
