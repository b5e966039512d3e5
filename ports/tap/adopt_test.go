package tap

import (
	"bytes"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// copyOf is a descriptor as another process gets it.
func copyOf(t *testing.T, fd int) int {
	t.Helper()
	c, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAdopt: a device goes on under another port, with its address and with what
// the host has sent meanwhile.
func TestAdopt(t *testing.T) {
	host := nstest.New(t)
	o := Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1400, Marks: true}
	before := openIn(t, host, o)
	host.AddAddress(t, "gw0", "10.9.0.1/24")
	index := host.Link(t, "gw0").Attrs().Index
	wire := nstest.OpenWire(t, host, "gw0")
	waiting := frameFrom([6]byte{2, 9, 9, 9, 9, 9}, 0)
	wire.Send(waiting.Bytes())

	before.Rest()
	if n := before.Receive(make([]*packet.Frame, 1)); n != 0 {
		t.Errorf("%d frames of a port that rests", n)
	}
	var after *Port
	var err error
	host.Do(t, func() { after, err = Adopt(o, []int{copyOf(t, before.Descriptors()[0])}) })
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := before.Close(); err != nil || before.Descriptors() != nil {
		t.Fatal(err)
	}
	f := receiveFrom(t, after, 60)
	if !bytes.Equal(f.Bytes(), waiting.Bytes()) {
		t.Errorf("%x came", f.Bytes())
	}
	packet.Release([]*packet.Frame{f})
	if now := host.Link(t, "gw0").Attrs().Index; now != index || !after.Info().Up || after.Info().MAC != o.MAC {
		t.Errorf("link %d is %d, %+v", index, now, after.Info())
	}
	after.Transmit([]*packet.Frame{frameFrom([6]byte{2, 1, 1, 1, 1, 1}, 5)})
	if got, want := sourceAtHost(t, wire), MarkMAC(5); !bytes.Equal(got, want[:]) {
		t.Errorf("the host got it from %x", got)
	}
}

// TestAdoptRefusals: another device, or one that is not what the options describe.
func TestAdoptRefusals(t *testing.T) {
	host := nstest.New(t)
	p := openIn(t, host, Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 1}})
	fresh, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		o  Options
		fd []int
	}{
		"the device is gw0": {Options{Name: "gw1"}, []int{copyOf(t, p.fd)}},
		"and MTU 1500":      {Options{Name: "gw0", MTU: 1400}, []int{copyOf(t, p.fd)}},
		"has the address":   {Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 2}}, []int{copyOf(t, p.fd)}},
		"no device":         {Options{Name: "gw0"}, []int{fresh}},
		"want 1":            {Options{Name: "gw0"}, []int{copyOf(t, p.fd), copyOf(t, p.fd)}},
	} {
		var err error
		host.Do(t, func() { _, err = Adopt(c.o, c.fd) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, fd := range c.fd {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor is open", want)
			}
		}
	}
	if !p.Info().Up {
		t.Error("the port that was there is down")
	}
}
