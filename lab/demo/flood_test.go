package demo

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// A flood of SYNs from one pod, against a table that is far too small for it
// and without a limit on new connections, so that only the table's own justice
// stands between the flood and the other pods.
const (
	floodTable  = 4096 // connections that fit
	floodRounds = 100  // in each of which a burst is sent while other pods connect
	floodBurst  = 2000 // SYNs of a round

	keptConnections = 10 // of each pair of pods, held through the flood
	keptPort        = 7007
	keptTimeout     = 20 * time.Second // bounds a failing test
)

// keptPairs hold connections through the flood, and askPairs make new ones
// during it. All of them cross node-a, where the flood is.
var (
	keptPairs = [][2]string{{"db-a", "client-b:7007"}, {"client-b", "client-a:7007"}, {"node-a", "client-a:7007"}}
	askPairs  = [][2]string{{"web-a", "db-a:3306"}, {"client-b", "web-a:80"}, {"node-a", "db-a:3306"}, {"db-a", "client-b:5001"}}
)

func TestFlood(t *testing.T) {
	l := upWith(t, lab.Options{Conntrack: config.Conntrack{Max: floodTable, NewRate: -1}})
	w, err := newWorld(l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	f := newFlood(t, w)
	kept := openKept(t, w)
	f.send(t, 4*floodTable) // what the agent ever allocates it has now
	before := residentMemory(t, l, "node-a")
	exchange := func(when string) {
		var all sync.WaitGroup
		for _, c := range kept {
			all.Go(func() {
				if err := c.exchange(); err != nil {
					t.Errorf("%s the flood: %s: %v", when, c.name, err)
				}
			})
		}
		all.Wait()
	}
	exchange("before")
	attempts, failed := 0, 0
	for round := range testsize.Rounds(floodRounds) {
		var busy sync.WaitGroup
		if round%10 == 0 {
			busy.Go(func() { exchange("during") })
		}
		a, b := f.round(t)
		attempts, failed = attempts+a, failed+b
		busy.Wait()
	}
	exchange("after")
	grown := residentMemory(t, l, "node-a") - before
	s := connectionCounters(t, w, "node-a")
	t.Logf("%d SYNs; %d of %d connects failed; %d connections kept; %d entries of %d, %d given up early; the agent's memory grew by %d kB",
		f.sent, failed, attempts, len(kept), s["ct_entries"], s["ct_limit"], s["ct_early_drop_total"], grown/1024)
	if failed*100 > attempts {
		t.Errorf("%d of %d connects failed, want 1 %% at most", failed, attempts)
	}
	if s["ct_entries"] > floodTable || s["ct_early_drop_total"] < floodTable {
		t.Errorf("the table was never full: %v", s)
	}
	if grown > 16*megabyte {
		t.Errorf("the agent's memory grew by %d bytes", grown)
	}
}

// flood is SYNs from client-a to an address outside that nobody has, each from another
// port and so a connection of its own.
type flood struct {
	w      *world
	socket *raw.Socket
	frame  []byte
	sent   int
}

func newFlood(t *testing.T, w *world) *flood {
	t.Helper()
	s, err := w.raw("client-a", "eth0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n := &w.lab.Topology.Nodes[0]
	return &flood{w: w, socket: s, frame: packettest.TCP4(packettest.Options{
		EthSrc: n.Pods[0].MAC, EthDst: n.GatewayMAC, Src: n.Pods[0].Address.V4, Dst: netip.MustParseAddr("198.51.100.1"),
	})}
}

// send sends n SYNs.
func (f *flood) send(t *testing.T, n int) {
	t.Helper()
	layers := packet.ParseLayers(f.frame)
	tcp := packet.TCP(f.frame[layers.L4:])
	for range n {
		tcp.SetSrcPort(uint16(1024 + f.sent%60000))
		tcp.SetDstPort(uint16(1 + f.sent/60000))
		layers.SetL4Checksum(f.frame)
		if err := f.socket.Send(f.frame); err != nil {
			t.Errorf("SYN %d: %v", f.sent, err)
			return
		}
		f.sent++
	}
}

// round sends a burst while the other pods connect, and counts the connects.
func (f *flood) round(t *testing.T) (attempts, failed int) {
	t.Helper()
	errs := make([]error, len(askPairs))
	var all sync.WaitGroup
	for i, pair := range askPairs {
		all.Go(func() { _, errs[i] = f.w.greet(t.Context(), pair[0], pair[1]) })
	}
	f.send(t, floodBurst)
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Logf("after %d SYNs: %v: %v", f.sent, askPairs[i], err)
			failed++
		}
	}
	return len(errs), failed
}

// kept is a connection to a server that says everything again.
type kept struct {
	net.Conn
	name  string
	count uint32
}

func openKept(t *testing.T, w *world) (all []*kept) {
	t.Helper()
	for _, pod := range []string{"client-a", "client-b"} {
		if err := w.listen(pod, keptPort, func(c net.Conn) { io.Copy(c, c) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, pair := range keptPairs {
		for range keptConnections {
			c, err := w.dial(t.Context(), pair[0], pair[1], keptTimeout)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if _, err := readGreeting(c); err != nil {
				t.Fatal(err)
			}
			all = append(all, &kept{Conn: c, name: fmt.Sprintf("%s to %s from %v", pair[0], pair[1], c.LocalAddr())})
		}
	}
	return all
}

// exchange sends a number that was not sent before, and has it back.
func (k *kept) exchange() error {
	k.count++
	var sent, back [4]byte
	binary.BigEndian.PutUint32(sent[:], k.count)
	if err := k.SetDeadline(time.Now().Add(keptTimeout)); err != nil {
		return err
	}
	if _, err := k.Write(sent[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(k, back[:]); err != nil {
		return err
	}
	if sent != back {
		return fmt.Errorf("%x came back for %x", back, sent)
	}
	return nil
}

// residentMemory is the bytes of a Node's agent that lie in memory.
func residentMemory(t *testing.T, l *lab.Lab, node string) int {
	t.Helper()
	for _, a := range l.State.Agents {
		if a.Node != node {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", a.Process.PID))
		if err != nil {
			t.Fatal(err)
		}
		pages, err := strconv.Atoi(strings.Fields(string(text))[1])
		if err != nil {
			t.Fatal(err)
		}
		return pages * os.Getpagesize()
	}
	t.Fatalf("no agent of %s", node)
	return 0
}

// connectionCounters are those counters of a Node's connections that have no
// label.
func connectionCounters(t *testing.T, w *world, node string) map[string]uint64 {
	t.Helper()
	var all []api.Counter
	if err := w.agent(node).JSON(t.Context(), "/conntrack/stats", nil, &all); err != nil {
		t.Fatal(err)
	}
	m := map[string]uint64{}
	for _, c := range all {
		m[c.Name] += c.Value
	}
	return m
}
