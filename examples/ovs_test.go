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
)

// ovsNode is Open vSwitch with one set of files.
type ovsNode struct {
	*instance
	name  string
	ports []string
	read  map[string]int    // bytes of each port's capture seen so far
	taken map[string]uint64 // packets by entry at the last call of hits
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{map[string]node{
		"node-a": newOVSNode(t, "two-nodes/node-a"),
		"node-b": newOVSNode(t, "two-nodes/node-b"),
	}}
}

// newOVSNode starts a switch and loads a set, such as "two-nodes/node-a", into it.
func newOVSNode(t *testing.T, set string) *ovsNode {
	t.Helper()
	n := startNode(t, set)
	n.ofctl(readFile(t, set+".groups"), "add-groups", "br0", "-")
	n.ofctl(readFile(t, set+".flows"), "add-flows", "br0", "-")
	return n
}

// startNode starts a switch with a set's ports, meters and names of tables.
func startNode(t *testing.T, set string) *ovsNode {
	t.Helper()
	n := &ovsNode{instance: startOVS(t), name: filepath.Base(set), read: map[string]int{}, taken: map[string]uint64{}}
	n.addPorts(readFile(t, set+".ports"))
	n.nameTables(tablesInOrder(readFile(t, set+".flows")))
	for _, m := range meterMods(readFile(t, set+".meters")) {
		n.ofctl("", "add-meter", "br0", m)
	}
	return n
}

var portLine = regexp.MustCompile(`(?m)^ (\d+)\(([^)]+)\)`)

// addPorts makes a dummy port of each line of a ports file; what leaves by it is
// captured.
func (n *ovsNode) addPorts(file string) {
	var args []string
	for _, m := range portLine.FindAllStringSubmatch(file, -1) {
		number, name := m[1], m[2]
		n.ports = append(n.ports, name)
		args = append(args, "--", "add-port", "br0", name, "--", "set", "interface", name, "type=dummy",
			"ofport_request="+number, "options:tx_pcap="+n.capture(name))
	}
	n.vsctl(args[1:]...)
}

func (n *ovsNode) capture(port string) string { return n.path(port + ".pcap") }

// nameTables gives the bridge's tables their names, numbered from 0.
func (n *ovsNode) nameTables(names []string) {
	set := []string{"set", "bridge", "br0"}
	var create []string
	for i, name := range names {
		set = append(set, fmt.Sprintf("flow_tables:%d=@t%d", i, i))
		create = append(create, "--", fmt.Sprintf("--id=@t%d", i), "create", "flow_table", "name="+name)
	}
	n.vsctl(append(set, create...)...)
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
// answers another command.
func (n *ovsNode) send(t *testing.T, port string, frame []byte) (out []sent) {
	t.Helper()
	before := n.received()
	n.appctl("netdev-dummy/receive", port, hex.EncodeToString(frame))
	for deadline := time.Now().Add(10 * time.Second); n.received() == before; {
		if time.Now().After(deadline) {
			t.Fatalf("%s never counted the frame put in at %s", n.name, port)
		}
	}
	for _, p := range n.ports {
		for _, f := range n.newFrames(t, p) {
			out = append(out, sent{n.name, p, f})
		}
	}
	return out
}

// received is how many packets have entered the pipeline.
func (n *ovsNode) received() (sum uint64) {
	for entry, packets := range n.counters() {
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
	b, err := os.ReadFile(n.capture(port))
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
	entryLine    = regexp.MustCompile(`table=(\w+), n_packets=(\d+),.* (priority=.*) actions=`)
	priorityOnly = regexp.MustCompile(`^(\w+) priority=(\d+)`)
)

// counters is the packets of each entry, by "TABLE priority=N,match".
func (n *ovsNode) counters() map[string]uint64 {
	n.appctl("revalidator/purge") // moves the datapath's counts into the entries
	c := map[string]uint64{}
	for _, m := range entryLine.FindAllStringSubmatch(n.ofctl("", "dump-flows", "br0"), -1) {
		c[m[1]+" "+m[3]], _ = strconv.ParseUint(m[2], 10, 64)
	}
	return c
}

func (n *ovsNode) hits(t *testing.T) (taken []string) {
	t.Helper()
	now := n.counters()
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
			expectSameLines(t, readFile(t, set+".flows"), n.ofctl("", "--no-stats", "dump-flows", "br0"))
			expectSameLines(t, readFile(t, set+".groups"), n.ofctl("", "dump-groups", "br0"))
			expectSameLines(t, readFile(t, set+".meters"), n.ofctl("", "dump-meters", "br0"))
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
