package uplink

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/ports/underlay"
	"golang.org/x/sys/unix"
)

var _ ports.Heritable = (*Port)(nil)

// adopt makes a port of the pair's, as another process would.
func (p *pair) adopt(t *testing.T, link string) (*Port, error) {
	t.Helper()
	kind := p.port.config.Kind
	memory := afxdp.NewMemory(256, 1)
	fds := porttest.Copies(t, p.port.Descriptors())
	var after *Port
	var err error
	p.a.Do(t, func() {
		after, err = Adopt(memory, Config{Link: link, Config: underlay.Config{Name: "tun0", Kind: kind, Local: p.aAddr, Peers: []underlay.Peer{{Address: p.bAddr}}, AnyNetwork: true, MTU: 1430}}, fds)
	})
	if err != nil {
		for _, fd := range fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Error("a descriptor is open")
			}
		}
	}
	t.Cleanup(func() {
		if after != nil {
			after.Close()
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return after, err
}

// TestAdopt: what waits for the card and for the sockets comes once, and both ways
// go on.
func TestAdopt(t *testing.T) {
	for family := range nodes {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) {
				p := open(t, family, kind)
				inner := pt.UDP4(pt.Options{Payload: []byte("inner")})
				send(t, p.port, p.bAddr, frameOf(inner))
				arrives(t, p.far, inner, p.aAddr, p.bAddr)
				p.await(t, nstest.MAC("eth1"))
				send(t, p.far, p.aAddr, frameOf(inner))
				arrives(t, p.port, inner, p.bAddr, p.aAddr)
				came := p.cardCame()
				send(t, p.far, p.aAddr, frameOf(inner)) // waits
				after, err := p.adopt(t, "eth0")
				if err != nil {
					t.Fatal(err)
				}
				p.port.Rest()
				if err := after.BeginTraffic(); err != nil {
					t.Fatal(err)
				}
				if p.cardCame() != came {
					t.Error("a port that rests has received")
				}
				if err := p.port.Close(); err != nil {
					t.Error(err)
				}
				p.port = after
				arrives(t, p.port, inner, p.bAddr, p.aAddr)
				if err := after.Relink(); err != nil {
					t.Fatal(err)
				}
				send(t, p.far, p.aAddr, frameOf(inner))
				arrives(t, p.port, inner, p.bAddr, p.aAddr)
				p.await(t, nstest.MAC("eth1"))
				send(t, p.port, p.bAddr, frameOf(inner))
				arrives(t, p.far, inner, p.aAddr, p.bAddr)
				if sent, came := p.cardSent(), p.cardCame(); sent != 1 || came != 2 {
					t.Errorf("%d and %d packets went by the card, want 1 and 2", sent, came)
				}
			})
		}
	}
}

// TestAdoptRefused: what cannot be taken over is closed, and the port before goes on.
func TestAdoptRefused(t *testing.T) {
	p := open(t, "IPv4", kinds[0])
	nstest.AddVeth(t, p.a, "eth2", p.b, "eth3")
	for link, want := range map[string]string{"eth2": "of another interface", "eth9": "Link not found"} {
		if _, err := p.adopt(t, link); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	inner := pt.UDP4(pt.Options{Payload: []byte("inner")})
	send(t, p.far, p.aAddr, frameOf(inner))
	arrives(t, p.port, inner, p.bAddr, p.aAddr)
	if p.cardCame() != 1 {
		t.Error("it came by another way than the card")
	}
}
