package afpacket

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Linux before 6.6 has no tcx. There the program is a filter of the link's qdisc clsact: the same
// hook, and the same verdicts.

// filter is a program in a link's qdisc.
type filter struct {
	links *netlink.Handle // of the link's network namespace
	index int
	qdisc netlink.Qdisc // nil if it already existed
	stays bool          // another process uses it
}

// openFilter is a filter of a link of the calling thread's network namespace. Nothing is attached
// yet.
func openFilter(index int) (*filter, error) {
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	return &filter{links: links, index: index}, nil
}

// CanForward returns why the kernel cannot forward a port's frames; nil if it can.
func CanForward() error {
	const loopback = 1 // of every network namespace
	_, err := link.QueryPrograms(link.QueryOptions{Target: loopback, Attach: ebpf.AttachTCXIngress})
	if isOlder(err) {
		return errors.New("tcx takes Linux 6.6")
	}
	return err
}

// takeFilter attaches a program on a kernel without tcx.
func takeFilter(index int, prog *ebpf.Program) (*filter, error) {
	f, err := openFilter(index)
	if err != nil {
		return nil, err
	}
	q := clsact(index)
	switch err := f.links.QdiscAdd(q); {
	case err == nil:
		f.qdisc = q
	case !errors.Is(err, unix.EEXIST):
		f.links.Close()
		return nil, fmt.Errorf("qdisc clsact: %w", err)
	}
	if err := f.Update(prog); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// filterName is the name that tc(8) and bpftool(8) show. Programs of offload entries have it,
// too.
const filterName = "antrail_ingress"

// of is the filter in netlink's form.
func (f *filter) of(fd int) *netlink.BpfFilter {
	return &netlink.BpfFilter{
		FilterAttrs:  netlink.FilterAttrs{LinkIndex: f.index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:           fd,
		Name:         filterName,
		DirectAction: true,
	}
}

// Update replaces the program.
func (f *filter) Update(prog *ebpf.Program) error {
	if err := f.links.FilterReplace(f.of(prog.FD())); err != nil {
		return fmt.Errorf("filter %s: %w", filterName, err)
	}
	return nil
}

// keepProgram keeps the filter attached when the port is closed.
func (f *filter) keepProgram() { f.stays = true }

// Close removes the program from the link, and the qdisc if takeFilter added it.
func (f *filter) Close() error {
	defer f.links.Close()
	switch {
	case f.stays:
		return nil
	case f.qdisc != nil:
		return gone(f.links.QdiscDel(f.qdisc))
	}
	return gone(f.links.FilterDel(f.of(0)))
}

// gone returns nil for an error that means that the link is gone, with everything attached to it.
func gone(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// Clean removes the programs that ports of a killed process have left on links of the calling
// thread's network namespace. It also removes a qdisc that holds nothing else. It reports each
// removal to tell.
func Clean(tell func(what string)) error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range links {
		attached, first := cleanTCX(l.Attrs().Index)
		filtered, err := cleanLink(l)
		if attached || filtered {
			tell(fmt.Sprintf("removed program %s of %s", filterName, l.Attrs().Name))
		}
		errs = append(errs, first, err)
	}
	return errors.Join(errs...)
}

// CleanLink is Clean for one link. It returns nil if the link is gone.
func CleanLink(name string) error {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return err
	}
	_, first := cleanTCX(l.Attrs().Index)
	_, err = cleanLink(l)
	return errors.Join(first, err)
}

func cleanLink(l netlink.Link) (removed bool, err error) {
	all, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return false, gone(err)
	}
	for _, f := range all {
		if b, is := f.(*netlink.BpfFilter); is && b.Name == filterName {
			if err := netlink.FilterDel(b); err != nil {
				return removed, gone(err)
			}
			removed = true
		}
	}
	if !removed || len(all) > 1 {
		return removed, nil
	}
	if out, err := netlink.FilterList(l, netlink.HANDLE_MIN_EGRESS); err != nil || len(out) > 0 {
		return removed, gone(err)
	}
	return removed, gone(netlink.QdiscDel(clsact(l.Attrs().Index)))
}

// clsact is the qdisc of a link.
func clsact(index int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
}
