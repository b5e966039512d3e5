package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet/packettest"
)

// forgeries is how many forged frames a check sends.
const forgeries = 5

// spoof is two frames that client-a sends to web-a: one with a false source, and one that
// differs only in having client-a's own. Both pods are on one Node, so a frame arrives
// unchanged or not at all.
type spoof struct {
	forged, genuine []byte
	// counted are the tables or reasons under which the forged frame may be counted. If the
	// agent knows the Pods, port security drops some before their table does.
	counted []string
}

// wire are the addresses of a spoof.
type wire struct{ client, web, stranger layerAddr }

type layerAddr struct {
	mac [6]byte
	ip  netip.Addr
}

func forgedMAC(a wire) spoof {
	return spoof{echoFrame(layerAddr{a.stranger.mac, a.client.ip}, a.web), echoFrame(a.client, a.web), []string{"foreign_mac", "SpoofGuard"}}
}

func forgedIP(a wire) spoof {
	return spoof{echoFrame(layerAddr{a.client.mac, a.stranger.ip}, a.web), echoFrame(a.client, a.web), []string{"SpoofGuard"}}
}

// forgedARP claims an address that is not the pod's. A host that believes it sends that
// address's packets here.
func forgedARP(a wire) spoof {
	return spoof{arpFrame(layerAddr{a.client.mac, a.stranger.ip}, a.web.ip), arpFrame(a.client, a.web.ip), []string{"ARPSpoofGuard"}}
}

// forged checks that forged frames reach no pod and that their drops are counted. The
// genuine frame behind them must arrive. Then a forged one would have arrived before it.
func forged(make func(wire) spoof) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		s := make(w.wire())
		n, err := w.dropsDuring(ctx, func() error { return w.sendSpoof(&s) }, s.counted...)
		if err == nil && n < forgeries {
			err = fmt.Errorf("%d forged frames sent, but %d drops counted as %s", forgeries, n, strings.Join(s.counted, " or "))
		}
		return fmt.Sprintf("%d sent, none arrived, %d drops as %s; the genuine one arrived", forgeries, n, strings.Join(s.counted, " or ")), err
	}
}

// strangerIP is an unused address in node-a's pod range.
var strangerIP = lab.Dual[netip.Addr]{V4: netip.MustParseAddr("10.10.0.66"), V6: netip.MustParseAddr("fd00:10:10::66")}

// wire looks up the addresses.
func (w *world) wire() wire {
	at := func(name string) layerAddr {
		_, p, _ := w.lab.Pod(name) // each lab has it
		return layerAddr{p.MAC, p.Address.Of(w.v6)}
	}
	return wire{client: at("client-a"), web: at("web-a"), stranger: layerAddr{[6]byte{2, 0, 0, 0, 0, 0x66}, strangerIP.Of(w.v6)}}
}

// sendSpoof sends the forged frames and the genuine one, and captures at web-a.
func (w *world) sendSpoof(s *spoof) error {
	to, err := w.raw("web-a", "eth0")
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := w.raw("client-a", "eth0")
	if err != nil {
		return err
	}
	defer from.Close()
	for range forgeries {
		if err := from.Send(s.forged); err != nil {
			return err
		}
	}
	if err := from.Send(s.genuine); err != nil {
		return err
	}
	for deadline := time.Now().Add(waitAtMost); ; {
		got, err := to.Receive(time.Until(deadline))
		switch {
		case err != nil:
			return err
		case got == nil:
			return errors.New("the genuine frame did not arrive")
		case bytes.HasPrefix(got, s.forged):
			return errors.New("a forged frame arrived at web-a")
		case bytes.HasPrefix(got, s.genuine):
			return nil
		}
	}
}

// echoFrame is an ICMP echo request.
func echoFrame(from, to layerAddr) []byte {
	o := packettest.Options{
		EthSrc: from.mac, EthDst: to.mac, Src: from.ip, Dst: to.ip, ICMPID: 0x5f00, ICMPSeq: 1, Payload: []byte("is this really my address?"),
	}
	if !from.ip.Is4() {
		return packettest.ICMPEcho6(o)
	}
	return packettest.ICMPEcho4(o)
}

// arpFrame is an ARP request (RFC 826) to all.
func arpFrame(from layerAddr, who netip.Addr) []byte {
	all := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return packettest.ARPRequest(packettest.Options{EthSrc: from.mac, EthDst: all, Src: from.ip, Dst: who})
}
