package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Check compares an attachment with what ADD made: the record, the result that the runtime
// kept, the Node, the sandbox and the switch.
func (n *Node) Check(ctx context.Context, r *cni.Request) error {
	unlock, err := n.lock(ctx, r.Attachment)
	if err != nil {
		return err
	}
	defer unlock()
	a, ok := n.record.findAttachment(r.Attachment)
	if !ok {
		return types.NewError(types.ErrUnknownContainer, fmt.Sprintf("no interface %s was given to %s", r.Interface, r.Container), "")
	}
	if err := n.checkAttachment(ctx, &a, r); err != nil {
		return cni.Errorf(cni.CodeNotAsGiven, fmt.Sprintf("interface %s of Pod %s/%s is not as it was given", a.Interface, a.Pod.Namespace, a.Pod.Name), err)
	}
	return nil
}

func (n *Node) checkAttachment(ctx context.Context, a *attachment, r *cni.Request) error {
	if why, doubt := n.staleReason(a); why != nil || doubt != nil {
		return errors.Join(why, doubt)
	}
	if a.Netns != r.Netns {
		return fmt.Errorf("it is in sandbox %s, not %s", a.Netns, r.Netns)
	}
	if err := a.checkPrevious(r.Previous); err != nil {
		return err
	}
	s, err := openSandbox(a.Netns)
	if err != nil {
		return err
	}
	defer s.close()
	link, err := n.checkEnds(a, s)
	if err != nil {
		return err
	}
	if err := n.checkInside(a, s, link); err != nil {
		return err
	}
	return n.awaitCheck(ctx, a)
}

// mostCheckWait is how long CHECK waits for a port that passes no packets. An agent that
// has just restarted may not have opened its ports yet.
const mostCheckWait = 2 * time.Second

// awaitCheck waits until the attachment's port passes packets, for mostCheckWait at most.
// The error says why it does not.
func (n *Node) awaitCheck(ctx context.Context, a *attachment) (err error) {
	ctx, cancel := context.WithTimeout(ctx, mostCheckWait)
	defer cancel()
	if n.await(ctx, func() error { err = n.inForce(a); return err }) == nil {
		return nil
	}
	return err
}

// checkPrevious compares the attachment with the result that the runtime kept. Plugins
// later in the chain may have added to that.
func (a *attachment) checkPrevious(was *types100.Result) error {
	if was == nil {
		return errors.New("there is no prevResult")
	}
	if !slices.ContainsFunc(was.Interfaces, func(i *types100.Interface) bool {
		return i.Name == a.Interface && i.Mac == a.MAC && i.Sandbox == a.Netns
	}) {
		return fmt.Errorf("prevResult has no interface %s with MAC address %s", a.Interface, a.MAC)
	}
	for _, ip := range a.IPs {
		if !slices.ContainsFunc(was.IPs, func(c *types100.IPConfig) bool {
			p, err := prefixOf(c.Address)
			return err == nil && p == ip
		}) {
			return fmt.Errorf("prevResult has no address %v", ip)
		}
	}
	return nil
}

// checkEnds checks both ends of the veth pair, and returns the sandbox's end.
func (n *Node) checkEnds(a *attachment, s *sandbox) (netlink.Link, error) {
	far, err := n.home.links.LinkByName(a.Link)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", a.Link, err)
	}
	near, err := s.links.LinkByName(a.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", a.Interface, err)
	}
	at := near.Attrs()
	switch {
	case far.Attrs().Flags&1 == 0: // net.FlagUp
		return nil, fmt.Errorf("link %s is down", a.Link)
	case at.Flags&1 == 0:
		return nil, fmt.Errorf("interface %s is down", a.Interface)
	case near.Type() != "veth" || at.ParentIndex != far.Attrs().Index:
		return nil, fmt.Errorf("interface %s is not the other end of %s", a.Interface, a.Link)
	case at.HardwareAddr.String() != a.MAC:
		return nil, fmt.Errorf("interface %s has MAC address %v, not %s", a.Interface, at.HardwareAddr, a.MAC)
	case at.MTU != n.MTU:
		return nil, fmt.Errorf("interface %s has MTU %d, not %d", a.Interface, at.MTU, n.MTU)
	}
	return near, nil
}

// checkInside checks addresses, limit, neighbour and routes in the sandbox.
func (n *Node) checkInside(a *attachment, s *sandbox, link netlink.Link) error {
	have, err := s.links.AddrList(link, unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	for _, ip := range a.IPs {
		if !slices.ContainsFunc(have, func(h netlink.Addr) bool {
			p, err := prefixOf(*h.IPNet)
			return err == nil && p == ip
		}) {
			return fmt.Errorf("interface %s has no address %v", a.Interface, ip)
		}
	}
	if err := a.checkLimit(s, link); err != nil {
		return err
	}
	if err := n.checkNeighbour(a, s, link); err != nil {
		return err
	}
	for _, w := range a.routes(n.gatewaysOf(a)) {
		if err := w.check(s, link); err != nil {
			return err
		}
	}
	return nil
}

// checkLimit checks that the sandbox's end has the Pod's limit.
func (a *attachment) checkLimit(s *sandbox, link netlink.Link) error {
	if a.Egress.Rate == 0 {
		return nil
	}
	all, err := s.links.QdiscList(link)
	if err != nil {
		return err
	}
	for _, q := range all {
		if tbf, ok := q.(*netlink.Tbf); ok && tbf.Rate == limiter(0, a.Egress).Rate {
			return nil
		}
	}
	return fmt.Errorf("nothing limits interface %s to %d bits a second", a.Interface, a.Egress.Rate)
}

// check returns an error if the sandbox lacks the route.
func (w way) check(s *sandbox, link netlink.Link) error {
	family := unix.AF_INET
	if w.to.Addr().Is6() {
		family = unix.AF_INET6
	}
	table := cmp.Or(w.table, unix.RT_TABLE_MAIN)
	filter := &netlink.Route{LinkIndex: link.Attrs().Index, Table: table}
	have, err := s.links.RouteListFiltered(family, filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return err
	}
	for _, r := range have {
		if w.is(&r) {
			return nil
		}
	}
	return fmt.Errorf("there is no route to %v via %v", w.to, w.via)
}

// is says whether a route of the kernel is this one.
func (w way) is(r *netlink.Route) bool {
	to := netip.PrefixFrom(unspecified(w.to.Addr()), 0)
	if r.Dst != nil {
		p, err := prefixOf(*r.Dst)
		if err != nil {
			return false
		}
		to = p
	}
	via, _ := netip.AddrFromSlice(r.Gw)
	return to == w.to && via.Unmap() == w.via
}

// Status says whether ADD would succeed for a known Pod.
func (n *Node) Status(_ context.Context, r *cni.Request) error {
	if err := n.Switch.Status(); err != nil || r.Delegated {
		return err
	}
	left, swept := n.record.checkFree(n.CIDRs, n.Gateways), false
	if left != nil {
		n.eachEnded(func(*attachment) { swept = true }) // the next ADD sweeps these
	}
	if left != nil && !swept {
		return cni.Errorf(types.ErrPluginNotAvailable, "Pods can get no address", left)
	}
	return nil
}

// checkFree is an error if a range has no free address.
func (r *record) checkFree(ranges []netip.Prefix, gateways []netip.Addr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.now.addrs(nil)
	for _, g := range gateways {
		all[g] = true
	}
	for _, p := range ranges {
		if _, ok := pick(p, r.now.last(p), all); !ok {
			return fmt.Errorf("no address is left in %v", p)
		}
	}
	return nil
}
