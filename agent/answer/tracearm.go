package answer

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/switchd/local"
)

// A live trace's request has names of Pods, ports and tables. It becomes conditions of the
// switch.

// arming is a request during its conversion.
type arming struct {
	p     *Answers
	armed api.Armed
	want  door.LiveRequest
}

// arm starts the trace of a request.
func (a *arming) arm(r *api.LiveTraceRequest) (door.Live, error) {
	first, err := firstID(r.FirstID)
	a.want = door.LiveRequest{
		Filters: []string{}, DroppedOnly: r.DroppedOnly, Count: max(0, r.Count), Begin: max(0, r.Begin), FirstID: first,
		Wait: time.Duration(max(0, r.WaitMS)) * time.Millisecond,
	}
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
	a.armed.InPort, a.armed.Filter = a.want.InPort, a.want.Filters
	return a.p.Switch.TraceLive(&a.want)
}

// either selects packets from a Pod and to it.
func (a *arming) either(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds(pod)
	if err != nil {
		return err
	}
	a.armed.Pod = pod
	a.want.Either = &door.End{Port: ends.Port, IPs: ends.IPs, Services: ends.Services}
	return nil
}

// through selects packets that enter or leave by a port.
func (a *arming) through(port string) error {
	if port == "" {
		return nil
	}
	no, ok := a.p.Switch.Names().PortID(port)
	if !ok {
		n, err := strconv.ParseUint(port, 10, 32)
		if no = uint32(n); err != nil || !slices.ContainsFunc(a.p.Switch.Ports(), func(p telemetry.PortStats) bool { return p.No == no }) {
			return fmt.Errorf("there is no port %q; antrail dump-ports --names lists them", port)
		}
	}
	a.armed.Through, a.want.Through = port, no
	return nil
}

// at selects packets that enter one of some tables.
func (a *arming) at(tables []string) error {
	for _, name := range tables {
		id, err := a.p.tableID(name)
		if err != nil {
			return err
		}
		a.want.Tables, a.armed.Tables = append(a.want.Tables, id), append(a.armed.Tables, name)
	}
	return nil
}

// firstID parses the first id of walks; 0 for none.
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

func (a *arming) wants(expression string) { a.want.Filters = append(a.want.Filters, expression) }

// from selects packets from a Pod.
func (a *arming) from(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds(pod)
	if err == nil && ends.Port == 0 {
		a.wants(local.Hosts("src", ends.IPs))
	}
	a.want.InPort = ends.Port
	return err
}

// to selects packets to a Pod.
func (a *arming) to(pod string) error {
	if pod == "" {
		return nil
	}
	ends, err := a.p.podEnds(pod)
	if err != nil {
		return err
	}
	a.wants(local.Hosts("dst", slices.Concat(ends.IPs, ends.Services)))
	a.want.To = ends.IPs
	return nil
}

// podEnds finds the Pod with a name.
func (p *Answers) podEnds(pod string) (control.PodEnds, error) {
	n, err := p.PodName(pod)
	if err != nil {
		return control.PodEnds{}, err
	}
	return p.Objects.PodEnds(n)
}
