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
