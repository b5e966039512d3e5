package openflow

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Controllers made with other libraries write and read some messages differently from
// ovs-ofctl. These tests keep what Open vSwitch allows them.

// wireActions are actions as OpenFlow 1.5 has them.
func wireActions(t *testing.T, text string) ([]byte, []flow.Action) {
	t.Helper()
	p, err := parse.Program(parse.Sources{Flows: parse.Text("entry", "table=0,priority=1,tcp,"+text)})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{}
	for _, a := range p.Entries[0].Actions {
		if err := w.action(a, V15); err != nil {
			t.Fatal(err)
		}
	}
	return w.b, p.Entries[0].Actions
}

// textOf reads actions of OpenFlow 1.5 as text.
func textOf(t *testing.T, b []byte) string {
	t.Helper()
	a := actionReader{v: V15}
	if err := a.read(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return (&flow.Entry{Actions: a.list}).String()
}

// TestMaskBitInActions: a field in learn() and move may have the bit that says "mask" and the
// length of a value with its mask.
func TestMaskBitInActions(t *testing.T) {
	for _, text := range []string{
		"actions=learn(table=1,priority=5,eth_type=0x800,nw_proto=6,NXM_OF_TCP_DST[],load:NXM_NX_REG8[0..15]->NXM_NX_REG0[0..15])",
		"actions=move:NXM_NX_REG8[0..15]->NXM_NX_REG0[0..15]",
	} {
		b, actions := wireActions(t, text)
		want := (&flow.Entry{Actions: actions}).String()
		masked := 0
		for _, h := range []header{headersOf[flow.EthType].oxm, headersOf[flow.EthType].nxm, headersOf[flow.Reg0+8].nxm, headersOf[flow.Reg0].nxm} {
			plain, bits := binary.BigEndian.AppendUint32(nil, h.u32()), binary.BigEndian.AppendUint32(nil, h.u32()+uint32(h.size)|0x100)
			masked += bytes.Count(b, plain)
			b = bytes.ReplaceAll(b, plain, bits)
		}
		if masked < 2 {
			t.Errorf("%s: %d headers in %x", text, masked, b)
		}
		if got := textOf(t, b); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
	}
}

// TestMeterAnywhere: OpenFlow 1.5 has a meter behind other actions, as Antrea's agent sends it for answers of
// DNS. In earlier versions it is an instruction, which comes first.
func TestMeterAnywhere(t *testing.T) {
	e, err := parse.Entry("ip actions=output:1,meter:5,output:2", nil)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[Version]string{V13: "meter:5,output:1,output:2", V15: "output:1,meter:5,output:2"} {
		b, err := Encode(Message{v, 1, &FlowMod{Entry: *e, OutPort: flow.PortNone, OutGroup: AnyGroup}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Body.(*FlowMod).Entry; !strings.HasSuffix(got.String(), want) {
			t.Errorf("%s: %s, want %s", v, got.String(), want)
		}
	}
}

// TestOutputToPortZero: 0 is a port's number.
func TestOutputToPortZero(t *testing.T) {
	b, _ := wireActions(t, "actions=output:1")
	b[7] = 0 // the port's last byte
	if got := textOf(t, b); !strings.HasSuffix(got, "actions=output:0") {
		t.Errorf("read %s", got)
	}
}

// TestPacketInMetadata: packet-ins have registers as one version's matches have them, and no
// bytes before them.
func TestPacketInMetadata(t *testing.T) {
	p := &PacketIn{Format: PacketInNX2, Table: 3, Cookie: 5, Reason: "action", Length: 14, Frame: make([]byte, 14), UserData: []byte{1}}
	p.Metadata.AddExact(flow.InPort, flow.Value{Lo: uint64(flow.PortController)})
	p.Metadata.AddExact(flow.Reg0, flow.Value{Lo: 0x40000})
	p.Metadata.AddExact(flow.Reg0+2, flow.Value{Lo: 0x1234})
	p.Metadata.AddExact(flow.Reg0+3, flow.Value{Lo: 0x5678})
	for v, want := range map[Version][]byte{
		V15: {
			0x80, 0, 0, 4, 0xff, 0xff, 0xff, 0xfd, // in_port
			0x80, 1, 1, 16, 0, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, // xreg0, of which reg1 is not told
			0x80, 1, 2, 8, 0, 0, 0x12, 0x34, 0, 0, 0x56, 0x78, // xreg1
		},
		V13: {
			0x80, 0, 0, 4, 0xff, 0xff, 0xff, 0xfd,
			0, 1, 0, 4, 0, 4, 0, 0, // reg0
			0, 1, 4, 4, 0, 0, 0x12, 0x34, // reg2
			0, 1, 6, 4, 0, 0, 0x56, 0x78, // reg3
		},
	} {
		b, err := Encode(Message{Version: v, Body: p})
		if err != nil {
			t.Fatal(err)
		}
		want = append([]byte{0, pinMetadata, 0, byte(4 + len(want))}, want...)
		if !bytes.Contains(b, want) {
			t.Errorf("%s: %x, want in it %x", v, b, want)
		}
		if got := strings.Join(ofpParse(t, b), " "); !strings.Contains(got, "reg0=0x40000,reg2=0x1234,reg3=0x5678,in_port=CONTROLLER") {
			t.Errorf("%s: ovs-ofctl reads %s", v, got)
		}
	}
}

// TestCTFlush: a request without a zone is for all zones, and a zone without its number is wrong.
func TestCTFlush(t *testing.T) {
	for _, c := range []struct {
		property string
		want     *CTFlush
	}{
		{"", &CTFlush{All: true}},
		{"\x00\x02\x00\x06\x00\x07\x00\x00", &CTFlush{Zone: 7}},
		{"\x00\x02\x00\x04\x00\x00\x00\x00", nil},
	} {
		b := []byte("\x06\x04\x00\x00\x00\x00\x00\x01\x00\x00\x23\x20\x00\x00\x00\x20" + strings.Repeat("\x00", 8) + c.property)
		b[3] = byte(len(b))
		m, err := Decode(b)
		if got, _ := m.Body.(*CTFlush); !reflect.DeepEqual(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %+v, %v, want %+v", c.property, got, err, c.want)
		}
	}
}
