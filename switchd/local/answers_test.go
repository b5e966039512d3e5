package local

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// refusingFlows send packets from port 1 to the controller as Antrea's pipeline does, with a
// userdata for each port number.
const refusingFlows = `
table=0, priority=9,tcp,tp_dst=80 actions=set_field:0x4003->reg0,goto_table:11
table=0, priority=9,tcp,tp_dst=81 actions=set_field:0x4400003->reg0,set_field:23->reg2,goto_table:28
table=0, priority=9,udp,tp_dst=81 actions=set_field:0x4400003->reg0,set_field:23->reg2,goto_table:28
table=0, priority=9,tcp,tp_dst=82 actions=set_field:0x6400003->reg0,set_field:23->reg2,goto_table:28
table=0, priority=9,tcp,tp_dst=83 actions=controller(userdata=00)
table=0, priority=9,tcp,tp_dst=84 actions=controller(userdata=01.02)
table=11, priority=200,reg0=0x4000/0x4000 actions=controller(reason=no_match,id=62373,userdata=04)
table=28, priority=200,reg0=0x4400000/0xfe600000 actions=controller(reason=no_match,id=62373,userdata=01.02)
table=28, priority=200,reg0=0x6400000/0xfe600000 actions=controller(reason=no_match,id=62373,userdata=01.03)
`

// refusing is a rig with these entries and Antrea's names of tables.
func refusing(t testing.TB) *rig {
	t.Helper()
	r := newRig(t)
	r.server.OnController(func(connected bool) { r.sw.SetControllerAway(!connected) })
	r.sw.SetControllerAway(true)
	prog, err := parse.Program(parse.Sources{Flows: parse.Text("flows", refusingFlows)})
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range map[uint8]string{5: "ConntrackState", 11: "EndpointDNAT", 23: "AntreaPolicyIngressRule", 28: "Output"} {
		prog.Names.SetTable(id, name)
	}
	if err := r.client.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
	return r
}

// answerTo sends a packet into port 1, and names the answer: RST, an ICMP type and code, or "".
func (r *rig) answerTo(t *testing.T, frame []byte) string {
	t.Helper()
	if err := r.ports[1].Send(frame); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
	var all []string
	for _, f := range r.ports[1].CollectAll() {
		b := f.Bytes()
		switch l := packet.ParseLayers(b); {
		case l.Proto == packet.ProtoTCP && packet.TCP(b[l.L4:]).Flags()&packet.TCPRst != 0:
			all = append(all, "reset")
		case l.Proto == packet.ProtoICMP && packet.ICMP(b[l.L4:]).Type() == packet.ICMPUnreachable:
			all = append(all, "unreachable")
		default:
			t.Errorf("answered with %x", b)
		}
	}
	return strings.Join(all, ", ")
}

// TestRejectsWithoutController: a packet-in that only asks for an answer is answered while no
// controller is connected. Any other is dropped, because there is no controller.
func TestRejectsWithoutController(t *testing.T) {
	r := refusing(t)
	tcp := func(port uint16) []byte { return packettest.TCP4(packettest.Options{SrcPort: 1000, DstPort: port}) }
	for _, s := range []struct {
		name   string
		frame  []byte
		want   string
		answer string // of a trace
	}{
		{"no endpoint", tcp(80), "reset", "answered by the switch"},
		{"rejected", tcp(81), "reset", "answered by the switch"},
		{"rejected UDP", packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 81}), "unreachable", "answered by the switch"},
		{"rejected and logged", tcp(82), "", "packet-in to the agent"},
		{"Traceflow", tcp(83), "", "packet-in to the agent"},
		{"the same userdata in another table", tcp(84), "", "packet-in to the agent"},
	} {
		away := r.sw.Drops()[telemetry.DropControllerAway]
		if got := r.answerTo(t, s.frame); got != s.want {
			t.Errorf("%s: answer %q, want %q", s.name, got, s.want)
		}
		if n := r.sw.Drops()[telemetry.DropControllerAway] - away; (n == 0) != (s.want != "") {
			t.Errorf("%s: %d dropped for want of a controller", s.name, n)
		}
		walk, err := r.client.Trace(&telemetry.TraceRequest{InPort: 1, Frame: s.frame})
		if err != nil {
			t.Fatal(err)
		}
		if got := walk.Verdict.Text(walk.Names); got != s.answer || !walk.Verdict.PacketIn {
			t.Errorf("%s: a trace says %q, want %q", s.name, got, s.answer)
		}
	}
	want := door.AnswerCounters{Service: door.Answers{Answered: 1}, Policy: door.Answers{Answered: 2}}
	if here, there := r.sw.Answers(), r.client.Answers(); here != want || there != want {
		t.Errorf("here %+v, there %+v, want %+v", here, there, want)
	}
	if err := r.sw.PacketCounters().Check(); err != nil {
		t.Error(err)
	}
}

// TestControllerGetsAll: while a controller is connected, the switch answers, and the controller
// gets every packet-in, also the answered ones.
func TestControllerGetsAll(t *testing.T) {
	r := refusing(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, events := make(chan bool), make(chan *door.Event, 10)
	go r.client.Control(ctx, "test", false, func() { close(begun) }, func(e *door.Event) { events <- e })
	<-begun
	for port, want := range map[uint16]string{80: "reset", 81: "reset", 82: "reset", 83: "", 84: ""} {
		frame := packettest.TCP4(packettest.Options{SrcPort: 1000, DstPort: port})
		if got := r.answerTo(t, frame); got != want {
			t.Errorf("port %d: answer %q, want %q", port, got, want)
		}
		if e := <-events; e.PacketIn == nil || !slices.Equal(e.PacketIn.Frame, frame) {
			t.Errorf("port %d: the controller got %+v", port, e)
		}
	}
}
