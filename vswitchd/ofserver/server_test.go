package ofserver

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// raw is a controller that sends bytes of its own.
type raw struct {
	t *testing.T
	net.Conn
}

// connect connects a controller of a version.
func (r *rig) connect(t *testing.T, v openflow.Version) *raw {
	t.Helper()
	return connectIn(t, r.dir, v)
}

// connectIn connects a controller to the bridge of a directory of sockets.
func connectIn(t *testing.T, dir string, v openflow.Version) *raw {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(dir, bridge+".mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &raw{t, conn}
	c.send(openflow.Message{Version: v, XID: 1, Body: &openflow.Hello{Versions: []openflow.Version{v}}})
	if b := c.next(); b[1] != 0 {
		t.Fatalf("%x is not a hello", b)
	}
	return c
}

func (c *raw) send(m openflow.Message) {
	c.t.Helper()
	b, err := openflow.Encode(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(b)
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next message other than a barrier reply.
func (c *raw) next() []byte {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := openflow.Read(c, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// bundleMessage is a message of a bundle, as OpenFlow 1.5 has it.
func bundleMessage(kind byte, xid byte, body ...byte) []byte {
	n := 8 + len(body)
	return append([]byte{byte(openflow.V15), kind, byte(n >> 8), byte(n), 0, 0, 0, xid}, body...)
}

// flowMod is an entry to add.
func flowMod(t *testing.T, xid uint32, text string) []byte {
	t.Helper()
	e, err := parse.Entry(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openflow.Encode(openflow.Message{Version: openflow.V15, XID: xid, Body: &openflow.FlowMod{Entry: *e, OutPort: flow.PortNone, OutGroup: openflow.AnyGroup}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantError is the error that comes next.
func (c *raw) wantError(xid byte, kind, code byte) {
	c.t.Helper()
	b := c.next()
	if b[1] != 1 || b[7] != xid || b[9] != kind || b[11] != code {
		c.t.Fatalf("%x, want an error of type %d and code %d for message %d", b, kind, code, xid)
	}
}

// TestBundleIsRefusedWhole commits a bundle whose second message names a group that is not
// there: the message and the commit are refused, each by its number, and nothing changes.
func TestBundleIsRefusedWhole(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	const control, add = 33, 34
	c.write(bundleMessage(control, 10, 0, 0, 0, 7, 0, 0, 0, 3))
	if b := c.next(); b[1] != control || b[7] != 10 || b[13] != 1 {
		t.Fatalf("%x does not say that the bundle is open", b)
	}
	for xid, text := range map[uint32]string{11: "table=1,priority=3,ip,actions=output:1", 12: "table=1,priority=4,ip,actions=group:99"} {
		c.write(bundleMessage(add, byte(xid), append([]byte{0, 0, 0, 7, 0, 0, 0, 3}, flowMod(t, xid, text)...)...))
	}
	c.write(bundleMessage(control, 13, 0, 0, 0, 7, 0, 4, 0, 3))
	c.wantError(12, 2, 9)   // OFPBAC_BAD_OUT_GROUP
	c.wantError(13, 17, 13) // OFPBFC_MSG_FAILED
	c.write(bundleMessage(control, 14, 0, 0, 0, 7, 0, 4, 0, 3))
	c.wantError(14, 17, 2) // OFPBFC_BAD_ID: it is gone
	if all := r.sw.Flows(); len(all) != 0 {
		t.Errorf("%d entries are there", len(all))
	}
}

// TestBundleBounds: a connection has at most maxBundles bundles.
func TestBundleBounds(t *testing.T) {
	c := newRig(t).connect(t, openflow.V15)
	for i := range maxBundles {
		c.write(bundleMessage(33, 1, 0, 0, byte(i>>8), byte(i), 0, 0, 0, 3))
		if b := c.next(); b[1] != 33 {
			t.Fatalf("bundle %d: %x", i, b)
		}
	}
	c.write(bundleMessage(33, 99, 1, 0, 0, 0, 0, 0, 0, 3))
	c.wantError(99, 17, 5) // OFPBFC_OUT_OF_BUNDLES
}

// TestWrongMessages: wrong and unsupported messages are refused, and the connection stays open.
func TestWrongMessages(t *testing.T) {
	c := newRig(t).connect(t, openflow.V15)
	for _, m := range []struct {
		bytes      []byte
		kind, code byte
	}{
		{bundleMessage(99, 5), 1, 1},                          // no such type
		{bundleMessage(14, 6, 1, 2, 3), 1, 6},                 // a cut flow mod
		{[]byte{1, 2, 0, 8, 0, 0, 0, 7}, 1, 0},                // another version
		{bundleMessage(4, 8, 0, 0, 0, 1, 0, 0, 0, 1), 1, 3},   // no such experimenter
		{bundleMessage(18, 9, 0, 55, 0, 0, 0, 0, 0, 0), 1, 2}, // no such statistics
	} {
		c.write(m.bytes)
		c.wantError(m.bytes[7], m.kind, m.code)
	}
	c.write(bundleMessage(2, 20, 'h', 'i'))
	if b := c.next(); b[1] != 3 || string(b[8:]) != "hi" {
		t.Errorf("%x is not an echo", b)
	}
}

// TestSlowReader: a controller that does not read stops neither others nor changes.
func TestSlowReader(t *testing.T) {
	r := newRig(t)
	slow := r.connect(t, openflow.V15)
	for xid := range byte(200) { // 200 answers of some 500 kB
		if slow.SetWriteDeadline(time.Now().Add(time.Second)); slow.sends(bundleMessage(18, xid, 0, 12, 0, 0, 0, 0, 0, 0)) != nil {
			break // its requests wait, too
		}
	}
	c := r.connect(t, openflow.V15)
	c.write(flowMod(t, 5, "priority=3,ip,actions=output:1"))
	c.write(bundleMessage(20, 6))
	if b := c.next(); b[1] != 21 || len(r.sw.Flows()) != 1 {
		t.Errorf("%x, and %d entries", b, len(r.sw.Flows()))
	}
}

func (c *raw) sends(b []byte) error {
	_, err := c.Write(b)
	return err
}

// wantPacketIns requests packet-ins as NXT_PACKET_IN2.
func (c *raw) wantPacketIns() {
	c.t.Helper()
	c.write(bundleMessage(9, 3, 0, 0, 0xff, 0xff))                          // SET_CONFIG
	c.write(bundleMessage(4, 4, 0, 0, 0x23, 0x20, 0, 0, 0, 16, 0, 0, 0, 2)) // NXT_SET_PACKET_IN_FORMAT
	c.barrier()
}

// TestPacketIn: a controller that wants packet-ins gets those of its id.
func TestPacketIn(t *testing.T) {
	r := newRig(t)
	c := r.connect(t, openflow.V15)
	c.write(flowMod(t, 2, "cookie=0x55,priority=3,ip,actions=load:0x7->NXM_NX_REG1[],controller(max_len=20,userdata=01.02)"))
	c.wantPacketIns()
	if err := r.ports[1].Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
	text := ofpPrint(t, c.next())
	for _, want := range []string{"NXT_PACKET_IN2", "cookie=0x55", "reg1=0x7", "in_port=1", "userdata=01.02", "data_len=20"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
