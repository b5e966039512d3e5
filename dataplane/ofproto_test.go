package dataplane_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/internal/testsize"
)

// The comparison with ofproto/trace: the same random packets over the seed's
// entries, and the two walks must be the same: every table with the entry hit
// in it, and at the end the same outputs of the same packet.

// visited is one table of a walk: its number, the entry's priority and match.
type visited struct {
	table    int
	priority int // -1: no entry matched
	match    string
}

// walked is what is compared of a walk.
type walked struct {
	tables  []visited
	outputs []string // port names
	toAgent bool
	final   map[string]string // the packet's fields at the end
}

// compared are the fields of the final packet that are compared, by the names
// that ofproto/trace prints.
var compared = map[string]flow.FieldID{
	"dl_src": flow.EthSrc, "dl_dst": flow.EthDst, "vlan_tci": flow.VlanTCI,
	"nw_src": flow.IPSrc, "nw_dst": flow.IPDst, "nw_ttl": flow.IPTTL,
	"tp_src": flow.TCPSrc, "tp_dst": flow.TCPDst,
	"arp_spa": flow.ArpSPA, "arp_tpa": flow.ArpTPA, "arp_op": flow.ArpOp, "arp_sha": flow.ArpSHA, "arp_tha": flow.ArpTHA,
	"pkt_mark": flow.PktMark, "tun_dst": flow.TunDst,
	"reg0": flow.Reg0, "reg1": flow.Reg0 + 1, "reg3": flow.Reg0 + 3, "reg4": flow.Reg0 + 4,
	"reg5": flow.Reg0 + 5, "reg6": flow.Reg0 + 6, "reg7": flow.Reg0 + 7, "reg9": flow.Reg0 + 9,
	"ct_mark": flow.CTMark, "ct_label": flow.CTLabel,
}

var (
	tableLine  = regexp.MustCompile(`^ *(\d+)\. (?:(.*), )?priority (\d+)`)
	missLine   = regexp.MustCompile(`^ *(\d+)\. No match`)
	bucketLine = regexp.MustCompile(`-> using bucket (\d+)`)
	outputWord = regexp.MustCompile(`^[a-zA-Z][\w-]*$`)
)

// parseOFProto reads the text of ofproto/trace; buckets are the choices that
// its groups made, in order.
func parseOFProto(text string) (w walked, buckets []int) {
	w.final = map[string]string{}
	current := ""
	for _, line := range strings.Split(text, "\n") {
		if m := tableLine.FindStringSubmatch(line); m != nil {
			w.tables = append(w.tables, visited{atoi(m[1]), atoi(m[3]), m[2]})
		} else if m := missLine.FindStringSubmatch(line); m != nil {
			w.tables = append(w.tables, visited{atoi(m[1]), -1, ""})
		} else if m := bucketLine.FindStringSubmatch(line); m != nil {
			buckets = append(buckets, atoi(m[1]))
		} else if rest, ok := strings.CutPrefix(line, "Flow: "); ok {
			current = rest
		} else if rest, ok := strings.CutPrefix(line, "Final flow: "); ok && rest != "unchanged" {
			current = rest
		} else if rest, ok := strings.CutPrefix(line, "Datapath actions: "); ok {
			for _, word := range splitTop(rest) {
				// Reason 2 is invalid_ttl: Open vSwitch also reports a packet that dec_ttl drops
				// to the agent, if the agent has ever requested that.
				w.toAgent = w.toAgent || strings.HasPrefix(word, "userspace(") && !strings.Contains(word, "reason=2,")
				if outputWord.MatchString(word) && word != "drop" && word != "br0" && word != "pop_vlan" && word != "ct_clear" {
					w.outputs = append(w.outputs, word)
				}
			}
		}
	}
	for _, part := range strings.Split(current, ",") {
		name, value, _ := strings.Cut(part, "=")
		if _, ok := compared[name]; ok {
			w.final[name] = value
		}
	}
	return w, buckets
}

// splitTop splits at commas outside parentheses.
func splitTop(s string) (parts []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, s[from:])
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// walkedOf reads the same from a trace of ours.
func walkedOf(t *telemetry.Trace, numbers *flow.Names) (w walked) {
	w.final = map[string]string{}
	key := t.Start
	for i := range t.Steps {
		st := &t.Steps[i]
		key = st.After
		switch st.Kind {
		case telemetry.StepEntry:
			v := visited{int(st.Table), -1, ""}
			if st.Entry != nil {
				v.priority, v.match = int(st.Entry.Priority), st.Entry.Match.Text(numbers)
			}
			w.tables = append(w.tables, v)
		case telemetry.StepOutput:
			w.outputs = append(w.outputs, t.Names.Port(st.Port))
		case telemetry.StepPacketIn:
			w.toAgent = true
		}
	}
	for name, id := range compared {
		_, value, _ := strings.Cut(flow.FieldText(id, &key, nil), "=")
		w.final[name] = value
	}
	return w
}

// differ says where two walks part; "" when they do not.
func differ(ours, theirs walked) string {
	for i := range max(len(ours.tables), len(theirs.tables)) {
		if i >= len(ours.tables) || i >= len(theirs.tables) || ours.tables[i] != theirs.tables[i] && !tie(ours.tables[i], theirs.tables[i]) {
			return fmt.Sprintf("step %d: ours %v, Open vSwitch %v", i, ours.tables[min(i, len(ours.tables)):], theirs.tables[min(i, len(theirs.tables)):])
		}
	}
	slices.Sort(ours.outputs)
	slices.Sort(theirs.outputs)
	if !slices.Equal(ours.outputs, theirs.outputs) || ours.toAgent != theirs.toAgent {
		return fmt.Sprintf("outputs: ours %v (agent %v), Open vSwitch %v (agent %v)", ours.outputs, ours.toAgent, theirs.outputs, theirs.toAgent)
	}
	for name, want := range theirs.final {
		if got := ours.final[name]; number(got) != number(want) && len(ours.outputs) > 0 {
			return fmt.Sprintf("%s at the end: ours %s, Open vSwitch %s", name, got, want)
		}
	}
	return ""
}

// number makes 0 and 0x0 and 0x0000 the same.
func number(s string) string {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil {
		return strconv.FormatUint(n, 10)
	}
	return s
}

// randomFlow is a packet in flow syntax that has good chances to get far: its
// values come from the seed's objects, a few are wrong on purpose.
func randomFlow(r *rand.Rand) string {
	type source struct{ port, mac, ip string }
	sources := []source{
		{"antrea-gw0", "ba:5e:d1:55:aa:c0", "10.10.0.1"}, {"antrea-gw0", "ba:5e:d1:55:aa:c0", "192.168.77.1"},
		{"antrea-tun0", "aa:bb:cc:dd:ee:01", "10.10.1.6"}, {"antrea-tc-tap1", "fa:b7:53:74:21:a6", "10.10.0.24"},
		{"client-6-3353ef", "5e:b5:e3:a6:90:b7", "10.10.0.26"}, {"web-7975-274540", "fa:b7:53:74:21:a6", "10.10.0.24"},
		{"db-755c6-5080e3", "36:48:21:a2:9d:b4", "10.10.0.25"}, {"antrea-l7-tap1", "fa:b7:53:74:21:a6", "10.10.0.24"},
	}
	pick := func(v ...string) string { return v[r.IntN(len(v))] }
	s := sources[r.IntN(len(sources))]
	if r.IntN(12) == 0 {
		s.ip = pick("10.10.0.99", "1.2.3.4")
	}
	if r.IntN(12) == 0 {
		s.mac = "02:00:00:00:00:01"
	}
	if r.IntN(10) == 0 {
		// Never to the sender's own address: traffic is learned and dropped
		// then, on both sides, but ofproto/trace does not learn, and floods.
		return fmt.Sprintf(`arp,in_port=%q,dl_src=%s,dl_dst=%s,arp_spa=%s,arp_tpa=%s,arp_sha=%s,arp_op=%s`, s.port, s.mac,
			pick("ff:ff:ff:ff:ff:ff", "5e:b5:e3:a6:90:b8"), s.ip, pick("10.10.1.1", "10.10.0.1", "10.10.0.24"), s.mac, pick("1", "2"))
	}
	dst := pick("10.10.0.24", "10.10.0.25", "10.10.0.26", "10.10.0.1", "10.10.1.6", "10.105.31.235", "10.101.255.29", "10.96.76.15",
		"192.168.77.150", "192.168.77.151", "192.168.77.200", "192.168.77.102", "192.168.77.103", "169.254.0.252", "169.254.0.253", "8.8.8.8")
	text := fmt.Sprintf(`in_port=%q,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=%s`, s.port, s.mac,
		pick("ba:5e:d1:55:aa:c0", "fa:b7:53:74:21:a6", "36:48:21:a2:9d:b4", "5e:b5:e3:a6:90:b7", "aa:bb:cc:dd:ee:ff"), s.ip, dst, pick("64", "64", "64", "2", "1"))
	if s.port == "antrea-l7-tap1" {
		text += ",dl_vlan=2"
	}
	if mark := pick("", "", "0x10", "0x12", "0x42", "0x53", "0x80", "0x20", "0x70"); mark != "" {
		text += ",ct_mark=" + mark
	}
	if label := pick("", "", "0x6", "0xe", "0x200000000", "0x700000003"); label != "" {
		text += ",ct_label=" + label
	}
	switch proto := pick("tcp", "tcp", "tcp", "udp", "icmp"); proto {
	case "icmp":
		return "icmp," + text + ",icmp_type=8,icmp_code=0"
	default:
		return proto + "," + text + fmt.Sprintf(",%s_src=%s,%s_dst=%s", proto, pick("1234", "53", "80"), proto, pick("80", "80", "8080", "3306", "53", "30004", "9"))
	}
}

// states are answers that ct() may be given.
var states = []struct {
	text string
	bits conntrack.State
}{
	{"trk,new", conntrack.Tracked | conntrack.New},
	{"trk,new", conntrack.Tracked | conntrack.New},
	{"trk,est", conntrack.Tracked | conntrack.Established},
	{"trk,est,rpl", conntrack.Tracked | conntrack.Established | conntrack.Reply},
	{"trk,rel", conntrack.Tracked | conntrack.Related},
	{"trk,inv", conntrack.Tracked | conntrack.Invalid},
}

// seedProgram parses examples/seed.
func seedProgram(t *testing.T) *flow.Program {
	t.Helper()
	p, err := parse.Program(parse.Sources{
		Flows:  parse.Text("seed.flows", example(t, "seed/seed.flows")),
		Groups: parse.Text("seed.groups", example(t, "seed/seed.groups")),
		Meters: parse.Text("seed.meters", example(t, "seed/seed.meters")),
		Ports:  parse.Text("seed.ports", example(t, "seed/seed.ports")),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func example(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(examples.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// numbers is a copy of names that knows the ports only.
func numbers(n *flow.Names) *flow.Names {
	only := flow.NewNames()
	for no := range uint32(64) {
		if name := n.Port(no); name != "" {
			only.SetPort(no, name)
		}
	}
	return only
}

// loadSeed gives Open vSwitch the same program, tables by number. Its select
// groups hash in the switch and not in the datapath, because ofproto/trace
// cannot follow the latter.
func loadSeed(t *testing.T, p *flow.Program) *ovstest.Switch {
	t.Helper()
	only := numbers(p.Names)
	var ports []ovstest.Port
	for no := range uint32(64) {
		if name := only.Port(no); name != "" {
			ports = append(ports, ovstest.Port{Name: name, Number: int(no)})
		}
	}
	ovs := ovstest.Start(t, ports...)
	var flows, groups strings.Builder
	for _, e := range p.Entries {
		fmt.Fprintln(&flows, strings.TrimSpace(e.Text(flow.Format{Names: only})))
	}
	for _, g := range p.Groups {
		fmt.Fprintln(&groups, strings.Replace(strings.TrimSpace(g.Text(only)), "type=select,", "type=select,selection_method=hash,", 1))
	}
	must(t)(ovs.Ofctl("add-meter", "meter=256,pktps,burst,band=type=drop,rate=500,burst_size=1000"))
	must(t)(ovs.Ofctl("add-meter", "meter=258,pktps,burst,band=type=drop,rate=500,burst_size=1000"))
	must(t)(ovs.Ofctl("--names", "add-groups", write(t, groups.String())))
	must(t)(ovs.Ofctl("--names", "add-flows", write(t, flows.String())))
	return ovs
}

func must(t *testing.T) func(string, error) string {
	return func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// traceOurs walks a packet in flow syntax through a switch of ours.
func traceOurs(t *testing.T, sw *dataplane.Switch, text string, next []conntrack.State, buckets []int) (*telemetry.Trace, error) {
	t.Helper()
	m, err := parse.Match(text, sw.Names())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return sw.Trace(&telemetry.TraceRequest{
		InPort: m.Value.InPort(), Frame: flow.Compose(&m.Value), Metadata: m, CTNext: next,
		PickBucket: func(g *flow.Group, chosen int) int {
			if len(buckets) == 0 {
				return chosen
			}
			chosen, buckets = buckets[0], buckets[1:]
			return chosen
		},
	})
}

// TestTraceAgainstOFProto walks random packets through the seed's pipeline here
// and in Open vSwitch until 1,000 (with -short 250) have been the same, and none was not. Walks
// that part where OpenFlow leaves the choice open do not count.
func TestTraceAgainstOFProto(t *testing.T) {
	p := seedProgram(t)
	ovs := loadSeed(t, p)
	sw := newSwitch(t, p)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	visits, open := map[int]int{}, 0
	walks := testsize.Rounds(1000)
	for i := 0; i < walks+open || len(visits) < 31 && i < 1000; i++ {
		text := randomFlow(r)
		args := []string{"ofproto/trace", ovstest.Bridge, text, "--names"}
		next := []conntrack.State{}
		for range 6 {
			s := states[r.IntN(len(states))]
			next = append(next, s.bits)
			args = append(args, "--ct-next", s.text)
		}
		theirText := must(t)(ovs.Appctl(args[0], args[1:]...))
		theirs, buckets := parseOFProto(theirText)
		trace, err := traceOurs(t, sw, text, next, buckets)
		if err != nil {
			t.Fatal(err)
		}
		ours := walkedOf(trace, numbers(p.Names))
		d := differ(ours, theirs)
		if d != "" && openChoice(ours, theirs) {
			open++
		} else if d != "" {
			var b strings.Builder
			trace.WriteText(&b, nil)
			t.Fatalf("seed %d, packet %d: %s\n%s\n%v\n--- ours\n%s\n--- Open vSwitch\n%s", seed, i, d, text, args[4:], b.String(), theirText)
		}
		for _, v := range ours.tables {
			visits[v.table]++
		}
	}
	t.Logf("besides %d walks at least that are the same, %d parted where OpenFlow leaves the choice open", walks, open)
	if open > walks*4/5 {
		t.Error("too many walks parted at entries that overlap; the packets are badly chosen")
	}
	if len(visits) < 31 {
		t.Errorf("the packets came to %d of 31 tables only: %v", len(visits), visits)
	}
}

// tie says whether two different entries of one table and priority were hit:
// OpenFlow leaves that choice to the switch.
func tie(a, b visited) bool {
	return a.table == b.table && a.priority == b.priority && a.match != b.match
}

// openChoice says whether two walks part after a tie whose entries have
// different actions, as the seed's mirror and redirect for packets between web
// and db.
func openChoice(ours, theirs walked) bool {
	for i := range min(len(ours.tables), len(theirs.tables)) {
		if tie(ours.tables[i], theirs.tables[i]) {
			return true
		}
	}
	return false
}
