package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCheckFindsDamage: CHECK passes, and fails after each kind of damage to an attachment.
func TestCheckFindsDamage(t *testing.T) {
	r := newRig(t)
	eth0 := func(box *nstest.Namespace) netlink.Link { return box.Link(t, "eth0") }
	for what, damage := range map[string]func(*nstest.Namespace, *cni.Request) error{
		"interface down":   func(b *nstest.Namespace, _ *cni.Request) error { return b.Links().LinkSetDown(eth0(b)) },
		"interface gone":   func(b *nstest.Namespace, _ *cni.Request) error { return b.Links().LinkDel(eth0(b)) },
		"Node's end down":  func(*nstest.Namespace, *cni.Request) error { return r.setDown() },
		"MTU":              func(b *nstest.Namespace, _ *cni.Request) error { return b.Links().LinkSetMTU(eth0(b), 1400) },
		"switch":           func(*nstest.Namespace, *cni.Request) error { r.sw.closed = errors.New("no entries"); return nil },
		"another sandbox":  func(_ *nstest.Namespace, q *cni.Request) error { q.Netns = nstest.New(t).Path(); return nil },
		"another result":   func(_ *nstest.Namespace, q *cni.Request) error { q.Previous.IPs = q.Previous.IPs[:1]; return nil },
		"result, other if": func(_ *nstest.Namespace, q *cni.Request) error { q.Previous.Interfaces[1].Mac = "x"; return nil },
		"MAC address": func(b *nstest.Namespace, _ *cni.Request) error {
			return b.Links().LinkSetHardwareAddr(eth0(b), net.HardwareAddr{2, 0, 0, 0, 0, 1})
		},
		"address": func(b *nstest.Namespace, q *cni.Request) error {
			return b.Links().AddrDel(eth0(b), &netlink.Addr{IPNet: &q.Previous.IPs[1].Address})
		},
		"route": func(b *nstest.Namespace, _ *cni.Request) error {
			all, err := b.Links().RouteListFiltered(unix.AF_INET, &netlink.Route{}, 0)
			for _, route := range all {
				if route.Gw != nil {
					return b.Links().RouteDel(&route)
				}
			}
			return errors.Join(err, errors.New("no route"))
		},
	} {
		box := nstest.New(t)
		q := request(box, "web", "eth0")
		q.Previous = r.add(q)
		r.must(r.Check(t.Context(), q))
		r.must(damage(box, q))
		r.code(what, r.Check(t.Context(), q), cni.CodeNotAsGiven)
		r.sw.closed = nil
		r.must(r.Del(t.Context(), q))
	}
	r.wantConsistent(0)
}

// setDown sets the Node's end of the only link down.
func (r *rig) setDown() error {
	link, err := r.home.links.LinkByName(r.veths()[0])
	if err != nil {
		return err
	}
	return r.home.links.LinkSetDown(link)
}

// TestDelegated: addresses of an IPAM plugin are accepted if they are this Node's and not
// in use. Its routes are, too.
func TestDelegated(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	q := request(box, "web", "eth0")
	q.Delegated = true
	if result, err := r.Add(t.Context(), q); result != nil || err != nil {
		t.Errorf("ADD before the IPAM plugin: %v, %v", result, err)
	}
	r.wantConsistent(0)
	give := func(gateway string, cidrs ...string) *cni.Request {
		with := *q
		with.IPAM = &types100.Result{}
		for _, c := range cidrs {
			ip, n, err := net.ParseCIDR(c)
			r.must(err)
			with.IPAM.IPs = append(with.IPAM.IPs, &types100.IPConfig{Address: net.IPNet{IP: ip, Mask: n.Mask}, Gateway: net.ParseIP(gateway)})
		}
		return &with
	}
	other := request(nstest.New(t), "other", "eth0")
	taken := r.add(other).IPs[0].Address.String()
	for what, c := range map[string]struct {
		code uint
		q    *cni.Request
	}{
		"no address":      {types.ErrInvalidNetworkConfig, give("")},
		"another Node's":  {types.ErrInvalidNetworkConfig, give("", "10.10.1.9/24")},
		"another gateway": {types.ErrInvalidNetworkConfig, give("10.10.0.254", "10.10.0.9/24")},
		"two of a family": {types.ErrInvalidNetworkConfig, give("", "10.10.0.9/24", "10.10.0.10/24")},
		"the gateway's":   {cni.CodeNoAddress, give("", "10.10.0.1/24")},
		"one that is had": {cni.CodeNoAddress, give("", taken)},
	} {
		_, err := r.Add(t.Context(), c.q)
		r.code(what, err, c.code)
	}
	r.must(r.Del(t.Context(), other))
	r.wantConsistent(0)

	given := give("", "10.10.0.9/32", "fd00:10:10::9/64")
	_, to, _ := net.ParseCIDR("192.0.2.0/24")
	given.IPAM.Routes = []*types.Route{{Dst: *to, MTU: 1300}}
	given.Previous = r.add(given)
	if len(given.Previous.Routes) != 1 || given.Previous.Routes[0].GW.String() != "10.10.0.1" {
		t.Errorf("routes %v", given.Previous.Routes)
	}
	r.must(r.Check(t.Context(), given))
	if again := r.add(q); text(again) != text(given.Previous) {
		t.Errorf("ADD again, without addresses: %s", text(again))
	}
	r.must(r.Del(t.Context(), q))
	r.wantEmpty(box)
}

// TestNoAddressLeft: after the last address ADD fails, and STATUS says so. Addresses in use
// elsewhere are not given.
func TestNoAddressLeft(t *testing.T) {
	r := newRig(t, "10.10.0.0/29") // .1 is the gateway, .7 broadcast
	q := request(nstest.New(t), "web", "eth0")
	for _, name := range []string{"eth0", "net1", "net2", "net3", "net4"} {
		r.must(r.Status(t.Context(), q))
		r.add(request(nstest.New(t), "web-"+name, name))
	}
	_, err := r.Add(t.Context(), q)
	r.code("ADD", err, cni.CodeNoAddress)
	r.code("STATUS", r.Status(t.Context(), q), types.ErrPluginNotAvailable)
	q.Delegated = true
	r.must(r.Status(t.Context(), q))
	r.sw.status = types.NewError(types.ErrLimitedConnectivity, "a worker hangs", "")
	r.code("STATUS", r.Status(t.Context(), q), types.ErrLimitedConnectivity)
	r.wantConsistent(5)
}

// TestAddressesOfTheGone: if no other address is left, ADD takes those of sandboxes that
// ended without DEL. An attachment that still has its link keeps its address.
func TestAddressesOfTheGone(t *testing.T) {
	r := newRig(t, "10.10.0.0/29")
	var all []*cni.Request
	for i := range 5 {
		all = append(all, request(nstest.New(t), fmt.Sprintf("web-%d", i), "eth0"))
		r.add(all[i])
	}
	lost, ok := r.record.findAttachment(all[2].Attachment)
	if !ok {
		t.Fatal("web-2 is in no record")
	}
	link, err := r.home.links.LinkByName(lost.Link)
	r.must(err)
	r.must(r.home.links.LinkDel(link)) // as when its sandbox ends
	q := request(nstest.New(t), "next", "eth0")
	r.must(r.Status(t.Context(), q))
	if got, want := r.add(q).IPs[0].Address.String(), lost.IPs[0].String(); got != want {
		t.Errorf("%s was given; %s is the only one that nobody has", got, want)
	}
	r.wantConsistent(5)
	_, err = r.Add(t.Context(), request(nstest.New(t), "further", "eth0"))
	r.code("ADD", err, cni.CodeNoAddress)
	r.must(r.Del(t.Context(), all[2])) // the runtime's DEL, late
	r.wantConsistent(5)
}

// TestSweep: Sweep frees the addresses of sandboxes that ended without DEL. An attachment
// that lost only its link keeps its address, and so does one that is locked.
func TestSweep(t *testing.T) {
	r := newRig(t)
	boxes := []*nstest.Namespace{nstest.New(t), nstest.New(t), nstest.New(t), nstest.New(t)}
	var all []*cni.Request
	for i, box := range boxes {
		all = append(all, request(box, fmt.Sprint("web-", i), "eth0"))
		r.add(all[i])
	}
	const stands, gone, bare, busy = 0, 1, 2, 3
	r.must(boxes[bare].Links().LinkDel(boxes[bare].Link(t, "eth0")))
	turn, free := r.tryLock(all[busy].Attachment)
	if !free {
		t.Fatal("somebody works for it")
	}
	boxes[gone].Remove()
	boxes[busy].Remove()
	left := func(want ...int) {
		t.Helper()
		for i, q := range all {
			if _, ok := r.record.findAttachment(q.Attachment); ok != slices.Contains(want, i) {
				t.Errorf("of %v, web-%d in the record: %v", want, i, ok)
			}
		}
	}
	for len(r.veths()) > 1 { // the kernel removes namespaces asynchronously
		time.Sleep(time.Millisecond)
	}
	r.Sweep()
	left(stands, bare, busy)
	r.unlock(all[busy].Attachment, turn)
	r.Sweep()
	left(stands, bare)
	r.must(r.Del(t.Context(), all[bare]))
	r.must(r.Del(t.Context(), all[gone])) // the runtime's DEL, late
	r.wantConsistent(1)
}

// TestRefused: ADD refuses what it cannot attach, with the specification's codes, and
// leaves nothing behind.
func TestRefused(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	plain := t.TempDir() + "/plain"
	r.must(os.WriteFile(plain, nil, 0o600))
	for what, c := range map[string]struct {
		code   uint
		change func(*cni.Request)
	}{
		"no Pod":             {types.ErrInvalidEnvironmentVariables, func(q *cni.Request) { q.Pod = cni.Pod{} }},
		"no interface":       {types.ErrInvalidEnvironmentVariables, func(q *cni.Request) { q.Interface = "" }},
		"no sandbox":         {types.ErrInvalidNetNS, func(q *cni.Request) { q.Netns = "/run/netns/none" }},
		"a plain file":       {types.ErrInvalidNetNS, func(q *cni.Request) { q.Netns = plain }},
		"the Node's own":     {types.ErrInvalidNetNS, func(q *cni.Request) { q.Netns = r.ns.Path() }},
		"an interface there": {cni.CodeNameTaken, func(q *cni.Request) { q.Interface = "lo" }},
	} {
		q := request(box, "web", "eth0")
		c.change(q)
		_, err := r.Do(t.Context(), cni.Add, q)
		r.code(what, err, c.code)
		r.wantConsistent(0)
	}
	_, err := r.Do(t.Context(), "nonsense", request(box, "web", "eth0"))
	r.code("a verb of nobody", err, types.ErrInvalidEnvironmentVariables)
	r.wantEmpty(box)
}
