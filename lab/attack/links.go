package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/packet/packettest"
)

// MACs and neighbours: frames with another's Ethernet source, and ARP and ND messages with
// false addresses.

const (
	forgeries = 20     // frames that a row sends
	macs      = 10_000 // Ethernet sources of the row that fills the table of MACs
)

// frames plays each of the frames that a function makes several times.
func frames(make func(*stage) [][]byte) func(context.Context, *stage) (int, error) {
	return func(_ context.Context, s *stage) (int, error) { return s.sendAll(make(s), forgeries) }
}

// honest sends what any pod may send. If it does not arrive, the watchers do not work.
func honest(_ context.Context, s *stage) (int, error) {
	return s.sendAll([][]byte{s.echo(s.to("web-a")), s.echo(s.to("web-b"))}, forgeries)
}

var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arp is an ARP request from a host to all, with the marker behind it.
func (s *stage) arp(from, to host) []byte {
	o := packettest.Options{EthSrc: from.mac, EthDst: broadcast, Src: from.address, Dst: to.address}
	return append(packettest.ARPRequest(o), s.marker...)
}

// neighbourRequest asks for another pod's MAC, by ARP or ND, with the attacker's own
// addresses.
func (s *stage) neighbourRequest() []byte {
	if s.v6 {
		return s.solicit(s.pod(attacker), s.pod("web-a"), allNodesMAC)
	}
	return s.arp(s.pod(attacker), s.pod("web-a"))
}

// withSource is a frame with another Ethernet source.
func withSource(frame []byte, mac [6]byte) []byte {
	copy(frame[6:12], mac[:])
	return frame
}

// hijackGateway sends frames from the gateway's MAC. Another pod then asks the gateway.
func hijackGateway(_ context.Context, s *stage) (int, error) {
	return s.hijack(s.gatewayOf(nodeA), nodeA, gatewayPort)
}

// hijackPod sends frames from another pod's MAC. A third pod then asks that pod.
func hijackPod(_ context.Context, s *stage) (int, error) {
	return s.hijack(s.pod("web-a"), "web-a", "eth0")
}

// hijack sends frames from the MAC of a victim, which has a link in a namespace. A switch
// that learns the MAC from them sends the victim's packets to the attacker. A third pod
// then asks the victim for its MAC, by frames to it alone.
func (s *stage) hijack(victim host, name, link string) (sent int, err error) {
	if sent, err = s.sendAll([][]byte{withSource(s.neighbourRequest(), victim.mac)}, forgeries); err != nil {
		return sent, err
	}
	third := *s
	third.marker = append([]byte("prb"), s.marker[3:]...) // it must not contain the attack's
	theft, err := third.watch(attacker, "eth0", s.pod(attacker).mac)
	if err != nil {
		return sent, err
	}
	arrival, err := third.watch(name, link, victim.mac)
	if err == nil {
		err = third.probe(victim)
		arrival.await(forgeries) // frames to the attacker would have arrived by then, too
		came, stolen := arrival.count(), theft.count()
		if err == nil && (came < forgeries || stolen > 0) {
			err = damage{fmt.Errorf("%d of %d frames to %s reached it, %d reached the attacker", came, forgeries, name, stolen)}
		}
		return sent, err
	}
	theft.count()
	return sent, err
}

// settle is how long frames may take on an idle Node.
const settle = 100 * time.Millisecond

// damage is an error about an attack's effect. It is a fault of the row, and does not stop
// the run.
type damage struct{ error }

// probe has a third pod ask the victim for its MAC, by a socket of its own.
func (s *stage) probe(victim host) error {
	from := s.pod("db-a")
	var frame []byte
	if s.v6 {
		frame = s.solicit(from, victim, victim.mac)
	} else {
		frame = s.arp(from, victim)
		copy(frame, victim.mac[:])
	}
	if err := s.openSocket("db-a"); err != nil {
		return err
	}
	defer s.socket.Close()
	_, err := s.sendAll([][]byte{frame}, forgeries)
	return err
}

// manyMACs sends frames from many MACs.
func manyMACs(_ context.Context, s *stage) (sent int, err error) {
	frame := s.neighbourRequest()
	for i := range macs {
		mac := [6]byte{2, 0x66}
		binary.BigEndian.PutUint32(mac[2:], uint32(i))
		n, err := s.sendAll([][]byte{withSource(frame, mac)}, 1)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// wantOwnMACs checks that the switch has learned only the attacker's own MAC at its port.
func wantOwnMACs(ctx context.Context, s *stage) error {
	_, pod, err := s.lab.Pod(attacker)
	if err != nil {
		return err
	}
	var all []api.LearnedMAC
	if err := s.agent(nodeA).JSON(ctx, "/fdb", nil, &all); err != nil {
		return err
	}
	own, foreign := s.pod(attacker).mac, 0
	for _, m := range all {
		mac, err := net.ParseMAC(m.MAC)
		if err != nil {
			return err
		}
		if m.Port == pod.OFPort && !bytes.Equal(mac, own[:]) {
			foreign++
		}
	}
	if foreign > 0 {
		return damage{fmt.Errorf("the switch learned %d foreign MACs at the attacker's port", foreign)}
	}
	return nil
}

// forgedARP claims another pod's address.
func forgedARP(s *stage) [][]byte {
	liar := s.pod(attacker)
	liar.address = s.pod("web-a").address
	return [][]byte{s.arp(liar, s.pod("db-a"))}
}
