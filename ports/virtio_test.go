package ports

import (
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

func TestVirtioHeader(t *testing.T) {
	large := packettest.Options{Payload: make([]byte, 9000), TCPFlags: packet.TCPAck, TCPOptions: []byte{1, 1, 1, 0}}
	cwr := large
	cwr.TCPFlags |= packet.TCPCwr
	plain := packet.NewFrame(make([]byte, 1024), nil)
	plain.SetBytes(packettest.TCP4(packettest.Options{}))
	for name, c := range map[string]struct {
		frame      *packet.Frame
		flags, gso byte
		headers    byte
	}{
		"complete":         {plain, 0, 0, 0},
		"partial checksum": {packettest.Undone(packettest.UDP6(packettest.Options{}), 0), 1, 0, 0},
		"TCP":              {packettest.Undone(packettest.TCP4(large), 1400), 1, 1, 14 + 20 + 24},
		"TCP over IPv6":    {packettest.Undone(packettest.TCP6(large), 1400), 1, 4, 14 + 40 + 24},
		"TCP with CWR":     {packettest.Undone(packettest.TCP4(cwr), 1400), 1, 0x81, 14 + 20 + 24},
		"UDP":              {packettest.Undone(packettest.UDP4(large), 1200), 1, 5, 14 + 20 + 8},
	} {
		h := make([]byte, VirtioLen)
		for i := range h {
			h[i] = 0xff // whatever was there
		}
		PutVirtio(h, c.frame)
		if h[0] != c.flags || h[1] != c.gso || h[2]|h[3] != c.headers {
			t.Errorf("%s: header %x, want flags %d, gso %#x, %d bytes of headers", name, h, c.flags, c.gso, c.headers)
		}
		back := packet.NewFrame(make([]byte, 256), nil)
		if !ReadVirtio(back, h) || back.Offload != c.frame.Offload {
			t.Errorf("%s: %x is read as %+v, want %+v", name, h, back.Offload, c.frame.Offload)
		}
	}
}

// An unknown kind of segmentation is not taken for a known one.
func TestReadVirtioRefuses(t *testing.T) {
	for _, gso := range []byte{2, 3, 6, 0x21, 0x7f, 0x83} { // 3: UDP in fragments; 0x21: inside a tunnel
		if ReadVirtio(packet.NewFrame(make([]byte, 64), nil), []byte{1, gso, 54, 0, 100, 0, 34, 0, 16, 0}) {
			t.Errorf("gso %#x was accepted", gso)
		}
	}
	if ReadVirtio(packet.NewFrame(make([]byte, 64), nil), []byte{1, 1, 54, 0, 0, 0, 34, 0, 16, 0}) {
		t.Error("segments of no size were accepted")
	}
}
