package switchd

import (
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	pt "github.com/antrail/antrail/packet/packettest"
	"golang.org/x/sys/unix"
)

// TestPortsBeginTogether: pod a sends to pod b while no switch runs, and while the next one gets
// their ports one after the other. Each packet is delivered once.
func TestPortsBeginTogether(t *testing.T) {
	for _, driver := range []string{door.DriverAFPacket, door.DriverAFXDP} {
		t.Run(driver, func(t *testing.T) { testBeginTogether(t, driver) })
	}
}

func testBeginTogether(t *testing.T, driver string) {
	g := newGiving(t)
	specs := []door.PortSpec{{No: 3, Name: "a", Link: "a", Driver: driver}, {No: 4, Name: "b", Link: "b", Driver: driver}}
	var wires []*nstest.Wire
	lent := map[string][]int{}
	for i := range specs {
		spec := &specs[i]
		pod := nstest.New(t)
		nstest.AddVeth(t, g.node, spec.Link, pod, "eth0")
		wires = append(wires, nstest.OpenWire(t, pod, "eth0"))
		g.node.Do(t, func() {
			if err := g.giver().OpenIn(spec); err != nil {
				t.Fatal(err)
			}
		})
		_, fds, err := g.client.LendPort(spec.No)
		if err != nil || len(fds) == 0 {
			t.Fatalf("%d descriptors, error %v", len(fds), err)
		}
		lent[spec.Name] = fds
		t.Cleanup(func() { door.CloseDescriptors(fds) })
	}
	if err := unix.Kill(g.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the switch to end", func() bool { _, err := g.client.Info(t.Context()); return err != nil })
	sent := uint16(0)
	send := func() {
		for range 50 {
			sent++
			if err := wires[0].Send(pt.UDP4(pt.Options{SrcPort: sent, Payload: make([]byte, 20)})); err != nil {
				t.Fatal(err)
			}
		}
	}
	send()
	next := newGivingIn(t, g.node)
	bundle, err := door.ReadBundle(strings.NewReader("flow add table=0,priority=1,in_port=3 actions=output:4\n"), nil)
	if err == nil {
		err = next.client.Apply(bundle)
	}
	if err != nil {
		t.Fatal(err)
	}
	resume, err := next.client.PausePorts()
	if err != nil {
		t.Fatal(err)
	}
	for i := range specs {
		next.node.Do(t, func() {
			if err := next.giver().Again(&specs[i], lent[specs[i].Name]); err != nil {
				t.Fatal(err)
			}
		})
		send()
		if p := next.client.Ports(); len(p) != i+1 || p[0].RxPackets != 0 {
			t.Fatalf("in a pause: %+v", p)
		}
	}
	resume()
	send()
	for n := uint16(1); n <= sent; n++ {
		b, err := wires[1].Receive(time.Minute)
		if err != nil || len(b) < 36 || uint16(b[34])<<8|uint16(b[35]) != n {
			t.Fatalf("packet %d of %d: %x has come, error %v", n, sent, b, err)
		}
	}
	for _, p := range next.client.Ports() {
		if p.Name == "a" && p.RxPackets != uint64(sent) {
			t.Errorf("%+v", p)
		}
	}
}
