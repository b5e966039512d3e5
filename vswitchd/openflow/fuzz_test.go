package openflow

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// FuzzDecode decodes any bytes. Whatever is decoded from a flow mod can be written again, and
// is the same when it comes back.
func FuzzDecode(f *testing.F) {
	for _, c := range captures(f) {
		f.Add(c.bytes)
	}
	f.Add(pausedPacket(f))
	for _, text := range append(monitorMessages, optionMessages...) {
		b, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize && len(b) <= maxMessage { // lengths are read by Read
			b[2], b[3] = byte(len(b)>>8), byte(len(b))
		}
		m, err := Decode(b)
		if err != nil {
			e, ok := err.(*Error)
			if !ok || e.Kind >= numErrorKinds {
				t.Fatalf("%x: %v is not an error of OpenFlow", b, err)
			}
			if _, err := Encode(Message{m.Version, m.XID, &ErrorReply{e.Kind, b}}); err != nil {
				t.Fatal(err)
			}
			return
		}
		switch x := m.Body.(type) {
		case *FlowMod:
			comesBack(t, x)
		case *BundleAdd:
			_, _ = Decode(x.Message)
		}
	})
}

// monitorMessages are flow monitors as ovs-ofctl 3.1 requests them in each version, their
// cancellation, and a change of the TLV table.
var monitorMessages = []string{
	"0110004000000005ffff000000002320000000020000000000000000001f0002001102000000000000000602080000000c010600001402005000000000000000",
	"0412004000000005ffff0000000000004f4e46000000074e00000000001f001500000002020000000001001580000a020800800014010680001c020050000000",
	"051200380000000500100000000000000000000000000002ffffffff001f02000001001580000a020800800014010680001c020050000000",
	"0612002800000005001000000000000000000000ffffffffffffffff005fff000001000400000000",
	"010400140000000000002320000000150000000a", "04040014000000004f4e46000000074e0000000a",
	"010400200000000000002320000000180000000000000000010280040000" + "0000",
}

// optionMessages are flow mods of OpenFlow 1.5 with fields of Geneve options: of no, 1, 4 and 12 bytes,
// with a mask, and one that no option can have.
var optionMessages = []string{
	optionFlowMod("00015000"), optionFlowMod("0001500105"), optionFlowMod("0001510812340000ffff0000"),
	optionFlowMod("0001520c000000000102030405060708"), optionFlowMod("00015100"), optionFlowMod("00016004000000ff"),
}

// optionFlowMod is a flow mod of OpenFlow 1.5 that adds an entry with one field.
func optionFlowMod(field string) string {
	n := 4 + len(field)/2
	match := fmt.Sprintf("0001%04x%s%s", n, field, strings.Repeat("00", padded(n)-n))
	return fmt.Sprintf("060e%04x00000001", 8+40+len(match)/2) + strings.Repeat("00", 17) + "00000000000000" + "ffffffff" + "ffffffff" + "ffffffff" + "00000000" + match
}

// TestDecodeOptions: a value may be shorter than an option, or longer with zeros.
func TestDecodeOptions(t *testing.T) {
	for i, want := range []string{"tun_metadata0=0", "tun_metadata0=0x5", "tun_metadata0=0x12340000/0xffff0000", "tun_metadata1=0x102030405060708", "tun_metadata0", ""} {
		b, err := hex.DecodeString(optionMessages[i])
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(b)
		if f, ok := m.Body.(*FlowMod); ok && f.Entry.Match.String() == want {
			continue
		}
		if e, ok := err.(*Error); want != "" || !ok || e.Kind != NoTLVField {
			t.Errorf("%d: %+v, %v, want %q", i, m.Body, err, want)
		}
	}
}

// TestDecodeMonitors decodes requests of ovs-ofctl.
func TestDecodeMonitors(t *testing.T) {
	for i, text := range monitorMessages[:4] {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(b)
		q, ok := m.Body.(*Request)
		if err != nil || !ok || q.Kind != StatsFlowMonitor || len(q.Monitors) != 1 {
			t.Fatalf("%d: %+v, %v", i, m.Body, err)
		}
		got := q.Monitors[0]
		want := FlowMonitor{Flags: 0x1f, FlowSelection: FlowSelection{Table: 2, OutPort: 2, OutGroup: AnyGroup, Match: got.Match}}
		match := "tcp,tcp_dst=80"
		if i == 3 {
			want.Flags, want.Table, want.OutPort, match = 0x3f, AllTables, flow.PortNone, ""
		}
		if got != want || got.Match.String() != match && got.Match.String() != "tcp,tp_dst=80" {
			t.Errorf("%d: %+v %q, want %+v %q", i, got, got.Match.String(), want, match)
		}
	}
}

// pausedPacket is NXT_RESUME with two lists of actions.
func pausedPacket(t testing.TB) []byte {
	t.Helper()
	p := &PacketIn{Format: PacketInNX2, Reason: "action", Length: 14, Frame: make([]byte, 14)}
	p.Metadata.AddExact(flow.InPort, flow.Value{Lo: 1})
	p.Metadata.AddExact(flow.CTState, flow.Value{Lo: 0x22})
	p.Rests = []Rest{{7, 9, []flow.Action{flow.Output{Port: 2}}}, {0, 1 << 63, []flow.Action{flow.Resubmit{InPort: flow.PortInPort, Table: 3}}}}
	b, err := Encode(Message{V15, 1, p})
	if err != nil {
		t.Fatal(err)
	}
	b[15] = nxtResume
	return b
}

// TestDecodeResume: a resumed packet has the fields and actions of its packet-in.
func TestDecodeResume(t *testing.T) {
	m, err := Decode(pausedPacket(t))
	q, ok := m.Body.(*Resume)
	if err != nil || !ok {
		t.Fatalf("%T, %v", m.Body, err)
	}
	state, _ := q.Fields.Get(flow.CTState)
	if q.InPort != 1 || len(q.Frame) != 14 || state.Lo != 0x22 || len(q.Rests) != 2 || q.Rests[0].Table != 7 || q.Rests[1].Table != 0 || q.Rests[0].Cookie != 9 || q.Rests[1].Cookie != 1<<63 {
		t.Errorf("%+v", q)
	}
}

// comesBack encodes a flow mod's entry in OpenFlow 1.5, and decodes it.
func comesBack(t *testing.T, x *FlowMod) {
	e := x.Entry
	if e.Table == AllTables {
		e.Table = 0
	}
	if x.Command >= FlowDelete || e.Check() != nil {
		return
	}
	b, err := Encode(Message{V15, 1, &FlowMod{Entry: e, OutPort: flow.PortNone, OutGroup: AnyGroup}})
	if err != nil {
		return // larger than a message in this version
	}
	m, err := Decode(b)
	if err != nil {
		t.Fatalf("%s: %x: %v", e.String(), b, err)
	}
	if got := m.Body.(*FlowMod).Entry; got.Match != e.Match {
		t.Fatalf("match %q came back as %q", e.Match.Text(nil), got.Match.Text(nil))
	}
}
