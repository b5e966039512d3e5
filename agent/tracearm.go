package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/filter"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// From what somebody asks for to what the switch watches: conditions on packets as
// they enter, which cost nothing for others, and conditions on walks that are over.

// arming is a request on its way to the switch.
type arming struct {
	p      *pipeline
	armed  Armed
	tables []uint8
	pod    control.PodEnds               // of the request's Pod, if it names one
	podTo  *filter.Filter                // packets to it; from it too, when it is another Node's
	keep   []func(*dataplane.Trace) bool // all have to hold
}

// arm begins the trace that a request asks for.
func (a *arming) arm(r *LiveTraceRequest) (*dataplane.LiveTrace, error) {
	a.armed.Filter = []string{}
	first, err := firstID(r.FirstID)
	for _, step := range []func() error{
		func() error { return a.from(r.Source) }, func() error { return a.to(r.Destination) }, func() error { return a.either(r.Pod) },
		func() error { return a.through(r.Through) }, func() error { return a.at(r.Tables) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return nil, err
	}
	if r.Port != 0 {
		a.wants(fmt.Sprintf("port %d", r.Port))
	}
	if r.Filter != "" {
		a.wants(r.Filter)
	}
	if r.DroppedOnly {
		a.keep = append(a.keep, wasDropped)
	}
	f, err := filter.Compile(a.armed.Filter...)
	if err != nil {
		return nil, err
	}
	return a.p.sw.TraceLive(dataplane.LiveRequest{
		Match: a.match(f), Deep: f.Deep(), Keep: a.keepAll(), Tables: a.tables, Count: max(0, r.Count), Begin: max(0, r.Begin), FirstID: first,
		Wait: time.Duration(max(0, r.WaitMS)) * time.Millisecond,
	})
}

// match is the conditions on a packet as it enters.
func (a *arming) match(f *filter.Filter) func([]byte, uint32) bool {
	inPort, pod, to := a.armed.InPort, a.pod.Port, a.podTo
	if to == nil {
		return func(b []byte, port uint32) bool { return (inPort == 0 || port == inPort) && f.Match(b) }
	}
	return func(b []byte, port uint32) bool {
		return (inPort == 0 || port == inPort) && (pod != 0 && port == pod || to.Match(b)) && f.Match(b)
	}
}

// either wants packets from a Pod and to it.
func (a *arming) either(pod string) (err error) {
	if pod == "" {
		return nil
	}
	if a.pod, err = a.p.podEnds(pod); err != nil {
		return err
	}
	expression := hosts("dst", slices.Concat(a.pod.IPs, a.pod.Services))
	if a.pod.Port == 0 {
		expression += " or " + hosts("src", a.pod.IPs)
	}
	if a.podTo, err = filter.Compile(expression); err != nil {
		return err
	}
	a.armed.Pod = pod
	ends := a.pod
	a.keep = append(a.keep, func(t *dataplane.Trace) bool {
		return ends.Port != 0 && t.Live.Port == ends.Port || ends.Port == 0 && slices.Contains(ends.IPs, addrIn(&t.Start, flow.IPSrc, flow.IPv6Src)) || mayReach(t, ends.IPs)
	})
	return nil
}

// through wants packets that enter or leave by a port.
func (a *arming) through(port string) error {
	if port == "" {
		return nil
	}
	no, ok := a.p.sw.Names().PortID(port)
	if !ok {
		n, err := strconv.ParseUint(port, 10, 32)
		if no = uint32(n); err != nil || !slices.ContainsFunc(a.p.sw.Ports(), func(p dataplane.PortStats) bool { return p.No == no }) {
			return fmt.Errorf("there is no port %q; antrail dump-ports --names has them", port)
		}
	}
	a.armed.Through = port
	a.keep = append(a.keep, func(t *dataplane.Trace) bool { return t.Live.Port == no || slices.Contains(t.Verdict.Outputs, no) })
	return nil
}

// at wants packets that enter one of some tables.
func (a *arming) at(tables []string) error {
	for _, name := range tables {
		id, err := a.p.tableID(name)
		if err != nil {
			return err
		}
		a.tables, a.armed.Tables = append(a.tables, id), append(a.armed.Tables, name)
	}
	if len(tables) > 0 {
		a.keep = append(a.keep, func(t *dataplane.Trace) bool {
			return slices.ContainsFunc(t.Steps, func(st dataplane.Step) bool {
				return st.Kind == dataplane.StepEntry && slices.Contains(a.tables, st.Table)
			})
		})
	}
	return nil
}

// firstID reads the id that walks are numbered from; 0 for none.
func firstID(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id>>32 == 0 {
		return 0, fmt.Errorf("firstID=%q has no session in the first 8 of its 16 hexadecimal digits", text)
	}
	return id, nil
}

func (a *arming) wants(expression string) { a.armed.Filter = append(a.armed.Filter, expression) }

// from wants packets from a Pod.
func (a *arming) from(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds(pod)
	if err == nil && ends.Port == 0 {
		a.wants(hosts("src", ends.IPs))
	}
	a.armed.InPort = ends.Port
	return err
}

// to wants packets to a Pod.
func (a *arming) to(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds(pod)
	if err != nil {
		return err
	}
	a.wants(hosts("dst", slices.Concat(ends.IPs, ends.Services)))
	a.keep = append(a.keep, func(t *dataplane.Trace) bool { return mayReach(t, ends.IPs) })
	return nil
}

// keepAll is that all conditions on walks hold; nil without any.
func (a *arming) keepAll() func(*dataplane.Trace) bool {
	if len(a.keep) == 0 {
		return nil
	}
	return func(t *dataplane.Trace) bool {
		return !slices.ContainsFunc(a.keep, func(k func(*dataplane.Trace) bool) bool { return !k(t) })
	}
}

// podEnds finds a Pod that a request names.
func (p *pipeline) podEnds(pod string) (control.PodEnds, error) {
	n, err := p.podName(pod)
	if err != nil {
		return control.PodEnds{}, err
	}
	return p.objects.PodEnds(n)
}

// podName reads the name of a Pod, of which there are none in flow files.
func (p *pipeline) podName(text string) (n control.Name, err error) {
	if p.objects == nil {
		return n, errors.New("this agent's pipeline comes from flow files, which know no Pods")
	}
	var ok bool
	if n.Namespace, n.Name, ok = strings.Cut(text, "/"); !ok || n.Namespace == "" || n.Name == "" || strings.Contains(n.Name, "/") {
		return n, fmt.Errorf("%q is not namespace/name of a Pod", text)
	}
	return n, nil
}

// hosts is a tcpdump expression for packets with an end in a list.
func hosts(dir string, addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return dir + " host (" + strings.Join(all, " or ") + ")"
}

// wasDropped says whether nothing came of a packet.
func wasDropped(t *dataplane.Trace) bool { return t.Verdict.Reason != dataplane.NotDropped }

// mayReach says whether a packet went to some addresses, or nowhere, or is not
// done.
func mayReach(t *dataplane.Trace, addrs []netip.Addr) bool {
	if len(t.Verdict.Outputs) == 0 {
		return true
	}
	return slices.ContainsFunc(t.Steps, func(st dataplane.Step) bool {
		if st.Kind != dataplane.StepOutput {
			return false
		}
		dst := addrIn(&st.After, flow.IPDst, flow.IPv6Dst)
		return slices.Contains(addrs, dst) || flow.FieldByID(flow.EthType).Get(&st.After).Lo == packet.EtherTypeARP
	})
}
