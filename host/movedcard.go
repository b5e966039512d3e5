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

// How addresses and routes move from a card to a bridge, and back:
//
//  1. The record has all of them before the first one moves (changerecord.go).
//  2. Link-local addresses of IPv6 stay on the card, too. Otherwise the kernel would make new
//     ones there.
//  3. When an address leaves any link, the kernel flushes all routes that have it as source. So
//     routes come last.
//  4. A step whose work is done already succeeds. So a move can start again after a kill.
//  5. A move that fails is undone.

// movedCard are the addresses and routes of a card.
type movedCard struct {
	Link      string    `json:"link"`
	Index     int       `json:"index"` // the card's, at the time of the record
	Bridge    string    `json:"bridge"`
	Addresses []message `json:"addresses"` // in the kernel's order
	Routes    []message `json:"routes"`
}

// check refuses a record that this package did not write.
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

// moveCard moves the card's addresses and routes to the bridge. It completes a move that a
// previous agent has begun.
func (h *Host) moveCard(c *Config) error {
	if c.Owned == nil {
		return nil
	}
	fresh := h.record.Card == nil
	if fresh {
		m, err := c.Owned.inspect()
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

// returnOther returns a card that a previous agent has moved and this one does not own.
func (h *Host) returnOther(c *Config) error {
	m := h.record.Card
	if m == nil || c.Owned != nil && c.Owned.Link == m.Link && c.Owned.Bridge == m.Bridge {
		return nil
	}
	return h.record.returnCard()
}

// ReturnCard moves back the addresses and routes of the card in a record's file, and
// reports that to tell. It returns the card's link: "" without a record, or without a card
// in it.
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

// returnCard moves all back and removes the card from the record. If the card is gone,
// nothing moves.
func (r *record) returnCard() error {
	if r.Card == nil {
		return nil
	}
	if err := r.Card.moveBack(); err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) {
		return err
	}
	return r.noteChange(func() { r.Card = nil })
}

// move moves all from the card to the bridge.
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

// moveBack moves all from the bridge, if that exists, to the card.
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

// putAddresses adds the addresses to a link, without duplicate address detection (RFC 4862,
// section 5.4): the Node has them already. On the card they get their original flags.
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

// takeAddresses removes the addresses from a link, the last first. With the first IPv4
// address of a network the kernel removes the others.
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

// putRoutes makes the routes by a link. The kernel keeps equal IPv4 routes with other next
// hops in order, and merges those of IPv6.
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

// takeRoutes removes the routes by a link.
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

// routesInOrder has routes without a next hop first, because those of the others need them.
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

// unless is the error of a step, or nil if that says that the step is done already.
func unless(done, err error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// isMoved says whether the bridge has all of it, and the card no address. If the kernel
// does not answer, it counts as moved.
func (m *movedCard) isMoved() bool {
	card, err := netlink.LinkByName(m.Link)
	if err != nil {
		return true // there is nothing to move
	}
	bridge, err := netlink.LinkByName(m.Bridge)
	if err != nil {
		return true // the port has to come back first
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

// hasRoutes says whether a link has all the routes.
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
