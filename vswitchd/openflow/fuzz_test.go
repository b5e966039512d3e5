package openflow

import (
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
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize && len(b) <= maxMessage { // lengths are read by Read
			b[2], b[3] = byte(len(b)>>8), byte(len(b))
		}
		m, err := Decode(b)
		if err != nil {
			e, ok := err.(*Error)
			if !ok || e.Kind >= numErrorKinds {
				t.Fatalf("%x: %v is no error of OpenFlow", b, err)
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

// pausedPacket is NXT_RESUME with two lists of actions.
func pausedPacket(t testing.TB) []byte {
	t.Helper()
	p := &PacketIn{Format: PacketInNX2, Reason: "action", Length: 14, Frame: make([]byte, 14)}
	p.Metadata.AddExact(flow.InPort, flow.Value{Lo: 1})
	p.Metadata.AddExact(flow.CTState, flow.Value{Lo: 0x22})
	p.Rests = []Rest{{7, []flow.Action{flow.Output{Port: 2}}}, {0, []flow.Action{flow.Resubmit{InPort: flow.PortInPort, Table: 3}}}}
	b, err := Encode(Message{V15, 1, p})
	if err != nil {
		t.Fatal(err)
	}
	b[15] = nxtResume
	return b
}

// TestDecodeResume: what a packet-in told comes back.
func TestDecodeResume(t *testing.T) {
	m, err := Decode(pausedPacket(t))
	q, ok := m.Body.(*Resume)
	if err != nil || !ok {
		t.Fatalf("%T, %v", m.Body, err)
	}
	state, _ := q.Fields.Get(flow.CTState)
	if q.InPort != 1 || len(q.Frame) != 14 || state.Lo != 0x22 || len(q.Rests) != 2 || q.Rests[0].Table != 7 || q.Rests[1].Table != 0 {
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
