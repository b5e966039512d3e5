package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// forgeries is how many forged frames a check sends.
const forgeries = 5

// spoof is two frames that client-a sends to web-a: one whose source is not
// client-a's, and one that differs in nothing but that it tells the truth.
// Both are bridged on one Node, so they arrive as they were sent or not at
// all.
type spoof struct {
	forged, genuine []byte
	// counted is the table or the reason under which the forged one must be counted.
	// Port security finds some before their table does, where the agent knows the Pods.
	counted []string
}

// wire is who is who in a spoof.
type wire struct{ client, web, stranger layerAddr }

type layerAddr struct {
	mac net.HardwareAddr
	ip  net.IP
}

func forgedMAC(a wire) (spoof, error) {
	forged, err := echoFrame(layerAddr{a.stranger.mac, a.client.ip}, a.web)
	return genuineEcho(a, spoof{forged: forged, counted: []string{"foreign_mac", "SpoofGuard"}}, err)
}

func forgedIP(a wire) (spoof, error) {
	forged, err := echoFrame(layerAddr{a.client.mac, a.stranger.ip}, a.web)
	return genuineEcho(a, spoof{forged: forged, counted: []string{"SpoofGuard"}}, err)
}

func genuineEcho(a wire, s spoof, err error) (spoof, error) {
	if err == nil {
		s.genuine, err = echoFrame(a.client, a.web)
	}
	return s, err
}

// forgedARP claims an address that is not the pod's: who believed it would
// send that address's packets here.
func forgedARP(a wire) (spoof, error) {
	forged, err := arpFrame(layerAddr{a.client.mac, a.stranger.ip}, a.web.ip)
	if err != nil {
		return spoof{}, err
	}
	genuine, err := arpFrame(a.client, a.web.ip)
	return spoof{forged, genuine, []string{"ARPSpoofGuard"}}, err
}

// forged is a check that forged frames reach nobody and are counted where they
// are dropped. The genuine frame that follows them must arrive: when it has,
// the forged ones would have come before it.
func forged(make func(wire) (spoof, error)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		s, err := make(w.wire())
		if err != nil {
			return "", err
		}
		before, err := w.dropped(ctx, "node-a", s.counted...)
		if err != nil {
			return "", err
		}
		if err := w.sendSpoof(&s); err != nil {
			return "", err
		}
		after, err := w.dropped(ctx, "node-a", s.counted...)
		if err != nil {
			return "", err
		}
		if n := after - before; n < forgeries {
			return "", fmt.Errorf("%d forged frames sent, but %d drops counted as %s", forgeries, n, strings.Join(s.counted, " or "))
		}
		return fmt.Sprintf("%d sent, none arrived, %d drops as %s; the genuine one arrived", forgeries, after-before, strings.Join(s.counted, " or ")), nil
	}
}

// strangerIP is in the pod range of node-a and nobody's.
var strangerIP = lab.Dual[netip.Addr]{V4: netip.MustParseAddr("10.10.0.66"), V6: netip.MustParseAddr("fd00:10:10::66")}

// wire looks the addresses up.
func (w *world) wire() wire {
	a := wire{stranger: layerAddr{net.HardwareAddr{2, 0, 0, 0, 0, 0x66}, of(w, strangerIP).AsSlice()}}
	for _, p := range w.lab.Topology.Nodes[0].Pods {
		at := layerAddr{p.MAC[:], of(w, p.Address).AsSlice()}
		switch p.Name {
		case "client-a":
			a.client = at
		case "web-a":
			a.web = at
		}
	}
	return a
}

// sendSpoof sends the forged frames and the genuine one and watches web-a.
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
func echoFrame(from, to layerAddr) ([]byte, error) {
	if len(from.ip) == net.IPv6len {
		return echoFrame6(from, to)
	}
	return serialize(
		&layers.Ethernet{SrcMAC: from.mac, DstMAC: to.mac, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: from.ip, DstIP: to.ip},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 0x5f00, Seq: 1},
		gopacket.Payload("is this really my address?"),
	)
}

// arpFrame is an ARP request (RFC 826) to all.
func arpFrame(from layerAddr, who net.IP) ([]byte, error) {
	all := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return serialize(
		&layers.Ethernet{SrcMAC: from.mac, DstMAC: all, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPRequest, SourceHwAddress: from.mac, SourceProtAddress: from.ip,
			DstHwAddress: make([]byte, 6), DstProtAddress: who,
		},
	)
}

func serialize(l ...gopacket.SerializableLayer) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...)
	return b.Bytes(), err
}
