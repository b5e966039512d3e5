package reject

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// recorder is a switch that records its packet-outs.
type recorder struct {
	names *flow.Names
	text  []string
}

func (r *recorder) Names() *flow.Names { return r.names }

func (r *recorder) PacketOut(inPort uint32, actions []flow.Action, frame []byte) error {
	r.text = append(r.text, fmt.Sprintf("in_port=%d %s %x", inPort, flow.ActionsText(actions, flow.Format{}), frame))
	return nil
}

// Numbers of tables in these tests; their names are Antrea's.
const (
	conntrackState, endpointDNAT, egressRule, ingressRule, output = 5, 11, 12, 23, 28
)

func antreaNames() *flow.Names {
	n := flow.NewNames()
	for id, name := range map[uint8]string{
		conntrackState: "ConntrackState", endpointDNAT: "EndpointDNAT", egressRule: "AntreaPolicyEgressRule",
		ingressRule: "AntreaPolicyIngressRule", output: "Output",
	} {
		n.SetTable(id, name)
	}
	return n
}

// packetIns are packet-ins by name: each kind of packet from a pod, and each way for two of them,
// in both directions of a policy. from is the input port.
func packetIns(t testing.TB) (names []string, all map[string]*telemetry.PacketIn) {
	t.Helper()
	all = map[string]*telemetry.PacketIn{}
	add := func(name string, frame []byte, table uint8, userdata, key string) {
		m, err := parse.Match(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		all[name] = &telemetry.PacketIn{InPort: 36, Table: table, UserData: []byte(userdata), Key: m.Value, Frame: frame}
	}
	o := packettest.Options{Seq: 1000, SrcPort: 2000, DstPort: 81, Payload: []byte("abc")}
	ack, reset := o, o
	ack.TCPFlags, ack.Ack = packet.TCPAck, 77
	reset.TCPFlags = packet.TCPRst
	for _, s := range []struct {
		name  string
		frame []byte
	}{
		{"SYN", packettest.TCP4(o)}, {"ACK", packettest.TCP4(ack)}, {"RST", packettest.TCP4(reset)},
		{"UDP", packettest.UDP4(o)}, {"echo", packettest.ICMPEcho4(o)}, {"SCTP", packettest.SCTP4(o)},
		{"SYN6", packettest.TCP6(o)}, {"ACK6", packettest.TCP6(ack)}, {"RST6", packettest.TCP6(reset)},
		{"UDP6", packettest.UDP6(o)}, {"echo6", packettest.ICMPEcho6(o)}, {"SCTP6", packettest.SCTP6(o)},
	} {
		add(s.name+" rejected", s.frame, output, "\x01\x02", "reg0=0x3/0xf,reg2=23")
		add(s.name+" without endpoint", s.frame, endpointDNAT, "\x04", "reg0=0x4003")
	}
	for _, w := range []struct{ name, key string }{
		{"pod", "reg0=0x3"}, {"gateway", "reg0=0x2"}, {"engine", "reg0=0x6"},
		{"tunnel", "reg0=0x1,tun_src=192.168.77.102,dl_src=aa:bb:cc:dd:ee:01"},
		{"tunnel of IPv6", "reg0=0x1,tun_ipv6_src=fd00::102,dl_src=aa:bb:cc:dd:ee:01"},
		{"pod to a Service", "reg0=0x3,ct_mark=0x12"}, {"gateway to a Service", "reg0=0x2,ct_mark=0x11"},
		{"tunnel to a Service", "reg0=0x1,ct_mark=0x13,tun_src=192.168.77.102"},
	} {
		for _, d := range []struct{ name, reg2 string }{{"Egress", ",reg2=12"}, {"Ingress", ",reg2=23"}} {
			add(fmt.Sprintf("SYN by %s, %s", w.name, d.name), packettest.TCP4(o), output, "\x01\x02", w.key+d.reg2)
			add(fmt.Sprintf("UDP6 by %s, %s", w.name, d.name), packettest.UDP6(o), output, "\x01\x02", w.key+d.reg2)
		}
	}
	syn := packettest.TCP4(o)
	add("logged and rejected", syn, output, "\x01\x03", "reg0=0xc03,reg2=23")
	add("recorded and rejected", syn, output, "\x01\x06", "reg0=0x3,reg2=23")
	add("logged", syn, output, "\x01\x01", "reg0=0x803,reg2=23")
	add("decided in no policy's table", syn, output, "\x01\x02", "reg0=0x3,reg2=5")
	add("with an endpoint", syn, endpointDNAT, "\x04", "reg0=0x3")
	add("DNS", packettest.UDP4(o), output, "\x02", "reg0=0x3")
	add("Traceflow", syn, output, "\x00", "reg0=0x3")
	add("no userdata", syn, output, "", "reg0=0x4003")
	return names, all
}

// answers passes each packet-in to one Answerer, and returns the packet-outs as text.
func answers(t testing.TB) string {
	var b strings.Builder
	names, all := packetIns(t)
	for _, name := range names {
		sw := &recorder{names: antreaNames()}
		NewAnswerer(sw).PacketIn(all[name])
		if len(sw.text) == 0 {
			sw.text = []string{"none"}
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(sw.text, "; "))
	}
	return b.String()
}

// TestAnswers compares answers and their ways with those of the agent, which once answered
// itself: testdata/answers.txt is from that code.
func TestAnswers(t *testing.T) {
	want, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(answers(t), "\n"), strings.Split(string(want), "\n")
	if len(got) != len(lines) {
		t.Fatalf("%d packet-ins, want %d", len(got), len(lines))
	}
	for i := range got {
		if got[i] != lines[i] {
			t.Errorf("%s\nwant %s", got[i], lines[i])
		}
	}
}

// TestAnswersOfTheUnderlay: an answer to the Node's card or the Node itself goes straight back,
// with the packet's tag. An answer that walks as a reply has a zone, but no tag.
func TestAnswersOfTheUnderlay(t *testing.T) {
	o := packettest.Options{Seq: 1000, SrcPort: 2000, DstPort: 81}
	inVLAN := o
	inVLAN.VLAN = 5
	for _, c := range []struct {
		key   string
		frame []byte
		want  string
	}{
		{"reg0=0x4", packettest.TCP4(o), "in_port=36 set_field:0x2000/0x2000->reg0,IN_PORT"},
		{"reg0=0x5", packettest.TCP4(o), "in_port=36 set_field:0x2000/0x2000->reg0,IN_PORT"},
		{"reg0=0x4,reg8=0x1005,dl_vlan=5", packettest.TCP4(inVLAN), "in_port=36 push_vlan:0x8100,set_field:4101->vlan_vid,set_field:0x2000/0x2000->reg0,IN_PORT"},
		{"reg0=0x3,reg8=0x1005,ct_mark=0x10", packettest.TCP4(o), "in_port=CONTROLLER set_field:0x2000/0x2000->reg0,set_field:0x1005/0xffff->reg8,resubmit(,5)"},
		{"reg0=0x4,reg8=0x1005,ct_mark=0x10,dl_vlan=5", packettest.TCP4(inVLAN), ""},
	} {
		m, err := parse.Match(c.key+",reg2=23/0xff", nil)
		if err != nil {
			t.Fatal(err)
		}
		sw := &recorder{names: antreaNames()}
		NewAnswerer(sw).PacketIn(&telemetry.PacketIn{InPort: 36, Table: output, UserData: []byte("\x01\x02"), Key: m.Value, Frame: c.frame})
		got := strings.Join(sw.text, ";")
		if c.want == "" && got != "" || !strings.HasPrefix(got, strings.Replace(c.want, "CONTROLLER", "4294967293", 1)) {
			t.Errorf("%s: %q, want %q", c.key, got, c.want)
		}
	}
}

// TestOtherPipelines: a controller whose tables have other names gets its packet-ins unanswered.
func TestOtherPipelines(t *testing.T) {
	names, all := packetIns(t)
	for _, name := range names {
		sw := &recorder{names: flow.NewNames()}
		NewAnswerer(sw).PacketIn(all[name])
		if len(sw.text) != 0 {
			t.Errorf("%s was answered with %s", name, sw.text)
		}
	}
}

// TestAlone: a packet-in that only asks for an answer needs no controller. Any other does.
func TestAlone(t *testing.T) {
	for _, s := range []struct {
		userdata, table string
		want            bool
	}{
		{"\x01\x02", "Output", true}, {"\x04", "EndpointDNAT", true},
		{"\x01\x01", "Output", false}, {"\x01\x03", "Output", false}, {"\x01\x06", "Output", false}, {"\x01\x07", "Output", false},
		{"\x00", "Output", false}, {"\x01", "Output", false}, {"\x02", "AntreaPolicyIngressRule", false}, {"\x03", "MulticastRouting", false},
		{"\x01\x02", "", false}, {"\x01\x02", "EndpointDNAT", false}, {"\x04", "Output", false}, {"", "Output", false}, {"", "", false},
	} {
		if got := Alone([]byte(s.userdata), s.table); got != s.want {
			t.Errorf("userdata %x of table %q: %v", s.userdata, s.table, got)
		}
	}
}

// TestAnswersAreLimited: packets beyond the rate are counted. No answer is made for them and
// nothing is allocated.
func TestAnswersAreLimited(t *testing.T) {
	_, all := packetIns(t)
	sw := &recorder{names: antreaNames()}
	a := NewAnswerer(sw)
	a.bucket.rate = 0
	a.bucket.tokens = 3
	for range 10 {
		a.PacketIn(all["SYN rejected"])
	}
	a.PacketIn(all["RST rejected"])
	if got, want := a.Counters().Policy, (door.Answers{Answered: 3, Limited: 7, Silent: 1}); got != want || len(sw.text) != 3 {
		t.Errorf("%+v and %d answers, want %+v", got, len(sw.text), want)
	}
	if n := testing.AllocsPerRun(100, func() { a.PacketIn(all["UDP6 rejected"]) }); n != 0 {
		t.Errorf("a packet beyond the rate takes %v allocations", n)
	}
}

func TestBucket(t *testing.T) {
	b := bucket{rate: 10, burst: 5}
	now := time.Unix(1000, 0)
	pass := func(n int) (got int) {
		for range n {
			if b.takeToken(now) {
				got++
			}
		}
		return got
	}
	var got []string
	for _, step := range []time.Duration{0, 100 * time.Millisecond, time.Hour} {
		now = now.Add(step)
		got = append(got, strings.Repeat("+", pass(20)))
	}
	if want := "+++++ + +++++"; strings.Join(got, " ") != want {
		t.Errorf("passed %q, want %q", strings.Join(got, " "), want)
	}
}
