package examples_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/packet"
)

// ovsNode is Open vSwitch with one set of files.
type ovsNode struct {
	*ovstest.Switch
	name   string
	ports  []string
	tables []string          // by their numbers
	read   map[string]int    // bytes of each port's capture seen so far
	taken  map[string]uint64 // packets by entry at the last call of hits
}

// newOVSNode starts a switch and loads a set, such as "two-nodes/node-a", into it.
func newOVSNode(t *testing.T, set string) *ovsNode {
	t.Helper()
	n := startNode(t, set)
	n.load(t, "add-groups", readFile(t, set+".groups"))
	n.load(t, "add-flows", readFile(t, set+".flows"))
	return n
}

// startNode starts a switch with a set's ports, meters and names of tables.
func startNode(t *testing.T, set string) *ovsNode {
	t.Helper()
	n := &ovsNode{Switch: ovstest.Start(t), name: filepath.Base(set), read: map[string]int{}, taken: map[string]uint64{}}
	for _, m := range portLine.FindAllStringSubmatch(readFile(t, set+".ports"), -1) {
		number, _ := strconv.Atoi(m[1])
		n.AddPorts(ovstest.Port{Name: m[2], Number: number})
		n.ports = append(n.ports, m[2])
	}
	n.tables = tablesInOrder(readFile(t, set+".flows"))
	n.nameTables(t, n.tables)
	for _, m := range meterMods(readFile(t, set+".meters")) {
		n.ofctl(t, "add-meter", m)
	}
	return n
}

var portLine = regexp.MustCompile(`(?m)^ (\d+)\(([^)]+)\)`)

// load gives a text to add-flows or add-groups.
func (n *ovsNode) load(t *testing.T, command, text string) {
	t.Helper()
	file := filepath.Join(n.Dir, command)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.ofctl(t, command, file)
}

// ofctl speaks with the bridge in names.
func (n *ovsNode) ofctl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t)(n.Ofctl(append([]string{"--names"}, args...)...))
}

// must ends the test on a command's error, and returns what it printed.
func must(t *testing.T) func(string, error) string {
	return func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// nameTables gives the bridge's tables their names, numbered from 0.
func (n *ovsNode) nameTables(t *testing.T, names []string) {
	t.Helper()
	set := []string{"set", "bridge", ovstest.Bridge}
	var create []string
	for i, name := range names {
		set = append(set, fmt.Sprintf("flow_tables:%d=@t%d", i, i))
		create = append(create, "--", fmt.Sprintf("--id=@t%d", i), "create", "flow_table", "name="+name)
	}
	must(t)(n.Vsctl(append(set, create...)...))
}

var meterLine = regexp.MustCompile(`meter=(\d+) pktps burst bands=\ntype=drop rate=(\d+) burst_size=(\d+)`)

// meterMods turns a dump of meters into what add-meter takes, one string each.
func meterMods(dump string) (mods []string) {
	for _, m := range meterLine.FindAllStringSubmatch(dump, -1) {
		mods = append(mods, fmt.Sprintf("meter=%s,pktps,burst,band=type=drop,rate=%s,burst_size=%s", m[1], m[2], m[3]))
	}
	return mods
}

// send puts the frame in, waits until the first table has counted it, and reads
// what the ports' captures have gained. The switch finishes a frame before it
// answers another command. The dummy in the tunnel port's place has no outer
// header, and shows the ARP that is flooded to it, which a tunnel port without
// tun_dst does not send.
func (n *ovsNode) send(t *testing.T, port string, frame []byte, _ packet.Tunnel) (out []sent) {
	t.Helper()
	before := n.received(t)
	must(t)(n.Appctl("netdev-dummy/receive", port, hex.EncodeToString(frame)))
	for deadline := time.Now().Add(time.Minute); n.received(t) == before; {
		if time.Now().After(deadline) {
			t.Fatalf("%s never counted the frame put in at %s", n.name, port)
		}
	}
	for _, p := range n.ports {
		for _, f := range n.newFrames(t, p) {
			if p != "antrea-tun0" || isIPv4(f) {
				out = append(out, sent{node: n.name, port: p, frame: f})
			}
		}
	}
	return out
}

// received is how many packets have entered the pipeline.
func (n *ovsNode) received(t *testing.T) (sum uint64) {
	t.Helper()
	for entry, packets := range n.counters(t) {
		if strings.HasPrefix(entry, "PipelineRootClassifier ") {
			sum += packets
		}
	}
	return sum
}

// newFrames reads what the capture file of a port has gained: a header of 24
// bytes, then for each frame 16 bytes, of which 8 to 12 are its length here.
func (n *ovsNode) newFrames(t *testing.T, port string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(n.Dir, port+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	from := max(n.read[port], 24)
	for n.read[port] = len(b); from+16 <= len(b); {
		size := int(binary.NativeEndian.Uint32(b[from+8:]))
		frames = append(frames, b[from+16:from+16+size])
		from += 16 + size
	}
	return frames
}

var (
	entryLine    = regexp.MustCompile(`(?m)^(?:table_id=(\d+), )?duration=\w+, n_packets=(\d+), n_bytes=\d+, (priority=.*),actions=`)
	priorityOnly = regexp.MustCompile(`^(\w+) priority=(\d+)`)
)

// counters is the packets of each entry, by "TABLE priority=N,match". The daemon itself
// prints them, without a process of ovs-ofctl for each frame: table 0 without its number, and
// then its own entries in tables without a name.
func (n *ovsNode) counters(t *testing.T) map[string]uint64 {
	t.Helper()
	must(t)(n.Appctl("revalidator/purge")) // moves the datapath's counts into the entries
	c := map[string]uint64{}
	for _, m := range entryLine.FindAllStringSubmatch(must(t)(n.Appctl("bridge/dump-flows", ovstest.Bridge)), -1) {
		if table, _ := strconv.Atoi(m[1]); table < len(n.tables) {
			c[n.tables[table]+" "+m[3]], _ = strconv.ParseUint(m[2], 10, 64)
		}
	}
	if len(c) == 0 {
		t.Fatalf("%s prints no entries", n.name)
	}
	return c
}

func (n *ovsNode) hits(t *testing.T) (taken []string) {
	t.Helper()
	now := n.counters(t)
	for entry, packets := range now {
		if packets > n.taken[entry] {
			taken = append(taken, priorityOnly.ReplaceAllString(strings.Split(entry, ",")[0], "$1 $2"))
		}
	}
	n.taken = now
	return taken
}

// What Open vSwitch loads it prints again, line for line.
func TestOpenVSwitchDumpsTheSameLines(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			n := newOVSNode(t, set)
			expectSameLines(t, readFile(t, set+".flows"), n.ofctl(t, "--no-stats", "dump-flows"))
			expectSameLines(t, readFile(t, set+".groups"), n.ofctl(t, "dump-groups"))
			expectSameLines(t, readFile(t, set+".meters"), n.ofctl(t, "dump-meters"))
		})
	}
}

// expectSameLines compares two texts without comments, headers and line order.
func expectSameLines(t *testing.T, want, got string) {
	t.Helper()
	wanted, printed := entriesOf(want), entriesOf(got)
	for _, l := range wanted {
		if !slices.Contains(printed, l) {
			t.Errorf("not printed: %s", l)
		}
	}
	for _, l := range printed {
		if !slices.Contains(wanted, l) {
			t.Errorf("printed, not in the file: %s", l)
		}
	}
	if len(wanted) != len(printed) {
		t.Errorf("%d lines printed for %d", len(printed), len(wanted))
	}
}

// entriesOf is the lines of a file or dump that stand for something.
func entriesOf(text string) (lines []string) {
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "OFPST") {
			lines = append(lines, l)
		}
	}
	return lines
}
