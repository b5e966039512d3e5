package host

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/internal/nft"
	"github.com/vishvananda/netlink"
)

// A card that stays the kernel's and that the switch shares. The kernel forwards between the
// card and a tap of the switch, which stands for the card there:
//
//	card → tap   TCP and UDP to the Node's address and a port of the pods' range; copies of echo
//	             replies, whose identifiers have no range, and of ICMP errors to the Node's address
//	tap → card   packets with the Node's address as source; all others are dropped
//
// All other packets go to the kernel as usual. So the host's connections do not notice if
// the switch dies. The rules then stay, and the tap drops what they forward: otherwise the
// kernel would reset the pods' connections. Fragments go to the kernel, because only first
// fragments have ports. So a pod gets no fragmented answers.

// SharedCard is a card with the tap that stands for it.
type SharedCard struct {
	Link, Tap   string
	MAC         [6]byte    // of the card
	Addr        netip.Addr // the Node's, on the card
	First, Last uint16     // ports of pods
}

// checkShared is an error if the card cannot be shared.
func (h *Host) checkShared(c *Config) error {
	if c.Shared == nil {
		return nil
	}
	if err := c.Shared.check(); err != nil {
		return fmt.Errorf("cannot share the card: %w", err)
	}
	return nil
}

func (s *SharedCard) check() error {
	link, err := netlink.LinkByName(s.Link)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Link, err)
	}
	if mac := link.Attrs().HardwareAddr; !bytes.Equal(mac, s.MAC[:]) {
		return fmt.Errorf("%s has the MAC address %s, expected %s, that of the uplink port", s.Link, mac, net.HardwareAddr(s.MAC[:]))
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Link, err)
	}
	if !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(s.Addr.AsSlice()) }) {
		return fmt.Errorf("%s does not have the Node's address %v", s.Link, s.Addr)
	}
	return checkPortRange(s.First, s.Last)
}

// addTo adds the chains of the card and of the tap.
func (s *SharedCard) addTo(t nft.Table) {
	if s == nil {
		return
	}
	t.Chain("card", "filter", "ingress device "+quote(s.Link), nft.Filter)
	whole := fmt.Sprintf("ip daddr %v ip frag-off & 0x3fff == 0", s.Addr)
	t.Rule("card", whole, "icmp type { echo-reply, destination-unreachable, time-exceeded, parameter-problem } dup to", quote(s.Tap))
	t.Rule("card", whole, "meta l4proto { tcp, udp } th dport", fmt.Sprintf("%d-%d", s.First, s.Last), "fwd to", quote(s.Tap))
	t.Chain("tap", "filter", "ingress device "+quote(s.Tap), nft.Filter)
	t.Rule("tap", "ip saddr", s.Addr, "fwd to", quote(s.Link))
	t.Rule("tap", "drop")
}
