package host

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addresses and routes that move from a card to a bridge, and back:
//
//  1. The record has all of them before the first one moves (changerecord.go).
//  2. Link-local addresses of IPv6 stay on the card, too: neighbours ask for none of them there, and
//     the kernel would make new ones.
//  3. The kernel flushes each route that has an address as its source when the address leaves any
//     link. So routes come last.
//  4. A step succeeds if its work is done already. So each way may begin again after a kill.
//  5. A move that fails is taken back.

// movedCard is what the kernel had on a card.
type movedCard struct {
	Link      string    `json:"link"`
	Index     int       `json:"index"` // of the card when it was looked at
	Bridge    string    `json:"bridge"`
	Addresses []message `json:"addresses"` // in the kernel's order
	Routes    []message `json:"routes"`
}

// check refuses a record that is not of this package.
func (m *movedCard) check() error {
	if m.Link == "" || m.Bridge == "" {
		return errors.New("a card without a link, or without a bridge")
	}
	for _, a := range m.Addresses {
		if _, err := addressOfMessage(a.Body); err != nil {
			return fmt.Errorf("%s: %w", a.What, err)
		}
	}
	for _, r := range m.Routes {
		if _, err := routeAt(r.Body, m.Index, m.Index); err != nil {
			return fmt.Errorf("%s: %w", r.What, err)
		}
	}
	return nil
}

// prefixes are the addresses.
func (m *movedCard) prefixes() (all []netip.Prefix) {
	for _, a := range m.Addresses {
		if p, err := addressOfMessage(a.Body); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// stays says whether an address stays on the card.
func stays(a message) bool {
	p, err := addressOfMessage(a.Body)
	return err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
}

// moveCard moves addresses and routes of the card to the bridge. It completes a move that an agent
// before has begun.
func (h *Host) moveCard(c *Config) error {
	if c.Owned == nil {
		return nil
	}
	fresh := h.record.Card == nil
	if fresh {
		m, err := c.Owned.look()
		if err == nil {
			err = h.record.noteChange(func() { h.record.Card = m })
		}
		if err != nil {
			return err
		}
		h.undoLater("move of "+m.Link, h.record.returnCard)
	}
	m := h.record.Card
	if slices.ContainsFunc(m.prefixes(), func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		if err := h.setSysctl(setting{conf6 + m.Bridge + "/disable_ipv6", "0"}); err != nil {
			return err
		}
	}
	if err := m.move(); err != nil {
		if fresh {
			err = errors.Join(err, h.record.returnCard())
		}
		return err
	}
	h.base = append(h.base, thing{
		"addresses and routes of " + m.Link + " on " + m.Bridge, m.move, func() error { return nil }, func(*kernel) bool { return m.isMoved() },
	})
	return nil
}

// returnOther gives a card back that an agent before has moved and this one does not own.
func (h *Host) returnOther(c *Config) error {
	m := h.record.Card
	if m == nil || c.Owned != nil && c.Owned.Link == m.Link && c.Owned.Bridge == m.Bridge {
		return nil
	}
	return h.record.returnCard()
}

// ReturnCard gives a card back what a process before has moved, as the record in a file says, and tells
// that. It returns the card's link. Without a record, or without a card in it, that is "".
func ReturnCard(path string, tell func(what string)) (card string, err error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	r, err := loadRecord(path)
	if err != nil || r.Card == nil {
		return "", err
	}
	card = r.Card.Link
	return card, r.cleanCard(tell)
}

// returnCard moves all back, and forgets it. A card that is gone has no addresses to get back.
func (r *record) returnCard() error {
	if r.Card == nil {
		return nil
	}
	if err := r.Card.moveBack(); err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) {
		return err
	}
	return r.noteChange(func() { r.Card = nil })
}

// move brings all from the card to the bridge.
func (m *movedCard) move() error {
	card, err := netlink.LinkByName(m.Link)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Link, err)
	}
	bridge, err := netlink.LinkByName(m.Bridge)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Bridge, err)
	}
	from, to := card.Attrs().Index, bridge.Attrs().Index
	if err := m.putAddresses(to, false); err != nil {
		return err
	}
	if err := errors.Join(m.takeRoutes(from), m.takeAddresses(from, true)); err != nil {
		return err
	}
	return m.putRoutes(to)
}

// moveBack brings all from the bridge, if that is there, to the card.
func (m *movedCard) moveBack() error {
	card, err := netlink.LinkByName(m.Link)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Link, err)
	}
	to := card.Attrs().Index
	if err := m.putAddresses(to, true); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(m.Bridge)
	if err == nil {
		from := bridge.Attrs().Index
		err = errors.Join(m.takeRoutes(from), m.takeAddresses(from, false))
	}
	if err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) {
		return err
	}
	return m.putRoutes(to)
}

// putAddresses gives a link the addresses. They are the Node's already, so the kernel asks nobody
// whether they are in use (RFC 4862, section 5.4); on the card they then are as they were.
func (m *movedCard) putAddresses(link int, card bool) error {
	for _, a := range m.Addresses {
		if card && stays(a) {
			continue
		}
		six := a.Body[0] == unix.AF_INET6
		body, err := addressAt(a.Body, link, card, six)
		if err == nil {
			err = unless(unix.EEXIST, send(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body, a.What))
		}
		if err == nil && six && card {
			if body, err = addressAt(a.Body, link, card, false); err == nil {
				err = send(unix.RTM_NEWADDR, unix.NLM_F_REPLACE, body, a.What)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeAddresses takes the addresses from a link, the last first: the kernel takes those of IPv4 with the
// first one of their network.
func (m *movedCard) takeAddresses(link int, card bool) error {
	for _, a := range slices.Backward(m.Addresses) {
		if card && stays(a) {
			continue
		}
		body, err := addressAt(a.Body, link, false, false)
		if err == nil {
			err = send(unix.RTM_DELADDR, 0, body, a.What)
		}
		if err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// putRoutes makes the routes by a link. IPv4 has equal routes with other next hops one behind the
// other, IPv6 puts them together.
func (m *movedCard) putRoutes(link int) error {
	for _, r := range routesInOrder(m.Routes) {
		body, err := routeAt(r.Body, m.Index, link)
		flags := unix.NLM_F_CREATE
		if r.Body[0] == unix.AF_INET {
			flags |= unix.NLM_F_APPEND
		}
		if err == nil {
			err = unless(unix.EEXIST, send(unix.RTM_NEWROUTE, flags, body, r.What))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeRoutes takes the routes by a link.
func (m *movedCard) takeRoutes(link int) error {
	for _, r := range slices.Backward(routesInOrder(m.Routes)) {
		body, err := routeAt(r.Body, m.Index, link)
		if err == nil {
			err = send(unix.RTM_DELROUTE, 0, body, r.What)
		}
		if err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// routesInOrder has routes before those whose next hop they lead to: those of a link first.
func routesInOrder(routes []message) []message {
	hops := func(r message) int {
		_, all, err := split(r.Body, unix.SizeofRtMsg)
		if err == nil && (valueOf(all, unix.RTA_GATEWAY) != nil || valueOf(all, unix.RTA_VIA) != nil || valueOf(all, unix.RTA_MULTIPATH) != nil) {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(routes), func(a, b message) int { return hops(a) - hops(b) })
}

// unless is the error of a step, but for one that says that it is done already.
func unless(done, err error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// isMoved says whether the bridge has all, and the card no address. What the kernel does not tell
// counts as moved.
func (m *movedCard) isMoved() bool {
	card, err := netlink.LinkByName(m.Link)
	if err != nil {
		return true // there is nothing to move
	}
	bridge, err := netlink.LinkByName(m.Bridge)
	if err != nil {
		return true // the port comes back first
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return true
	}
	k := &kernel{addresses: addresses}
	for _, a := range m.Addresses {
		p, err := addressOfMessage(a.Body)
		if err != nil || !k.hasAddress(bridge, p) || !stays(a) && k.hasAddress(card, p) {
			return false
		}
	}
	return m.hasRoutes(bridge.Attrs().Index)
}

// hasRoutes says whether a link has all routes.
func (m *movedCard) hasRoutes(link int) bool {
	var have [][]byte
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		all, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, family)
		if err != nil {
			return true
		}
		have = append(have, all...)
	}
	for _, r := range m.Routes {
		want, err := routeAt(r.Body, m.Index, link)
		if err != nil || !slices.ContainsFunc(have, func(b []byte) bool {
			b, err := routeAt(b, link, link)
			return err == nil && bytes.Equal(b, want)
		}) {
			return false
		}
	}
	return true
}
