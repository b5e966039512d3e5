package local

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/filter"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// This file turns a controller's request for a live trace into conditions for the workers: on
// packets as they enter, and on finished walks.

// watch is a request on its way to the workers.
type watch struct {
	*door.LiveRequest
	filter *filter.Filter
	either *filter.Filter                // packets to or from the request's End; nil: all
	keep   []func(*telemetry.Trace) bool // all must hold
}

// TraceLive implements door.Packets. The error names the wrong expression.
func (s *Switch) TraceLive(r *door.LiveRequest) (door.Live, error) {
	w := watch{LiveRequest: r}
	var err error
	if w.filter, err = filter.Compile(r.Filters...); err == nil {
		err = w.conditions()
	}
	if err != nil {
		return nil, err
	}
	l, err := s.Switch.TraceLive(dataplane.LiveRequest{
		Match: w.match(), Deep: w.filter.Deep(), Keep: w.keepAll(), Tables: r.Tables,
		Count: r.Count, Begin: r.Begin, Wait: r.Wait, FirstID: r.FirstID,
	})
	if err != nil {
		return nil, err // l would be a non-nil Live
	}
	return l, nil
}

// conditions collects the conditions on finished walks.
func (w *watch) conditions() (err error) {
	if e := w.Either; e != nil {
		expression := Hosts("dst", slices.Concat(e.IPs, e.Services))
		if e.Port == 0 {
			expression += " or " + Hosts("src", e.IPs)
		}
		if w.either, err = filter.Compile(expression); err != nil {
			return err
		}
		w.keep = append(w.keep, func(t *telemetry.Trace) bool { return cameFrom(t, e) || mayReach(t, e.IPs) })
	}
	if w.To != nil {
		w.keep = append(w.keep, func(t *telemetry.Trace) bool { return mayReach(t, w.To) })
	}
	if w.Through != 0 {
		w.keep = append(w.keep, func(t *telemetry.Trace) bool {
			return t.Live.Port == w.Through || slices.Contains(t.Verdict.Outputs, w.Through)
		})
	}
	if len(w.Tables) > 0 {
		w.keep = append(w.keep, func(t *telemetry.Trace) bool {
			return slices.ContainsFunc(t.Steps, func(st telemetry.Step) bool {
				return st.Kind == telemetry.StepEntry && slices.Contains(w.Tables, st.Table)
			})
		})
	}
	if w.DroppedOnly {
		w.keep = append(w.keep, func(t *telemetry.Trace) bool { return t.Verdict.Reason != telemetry.NotDropped })
	}
	return nil
}

// match has the conditions on a packet as it enters.
func (w *watch) match() func([]byte, uint32) bool {
	inPort, either, f := w.InPort, w.either, w.filter
	if either == nil {
		return func(b []byte, port uint32) bool { return (inPort == 0 || port == inPort) && f.Match(b) }
	}
	own := w.Either.Port
	return func(b []byte, port uint32) bool {
		return (inPort == 0 || port == inPort) && (own != 0 && port == own || either.Match(b)) && f.Match(b)
	}
}

// keepAll reports whether all conditions on walks hold; nil if there are none.
func (w *watch) keepAll() func(*telemetry.Trace) bool {
	if len(w.keep) == 0 {
		return nil
	}
	return func(t *telemetry.Trace) bool {
		return !slices.ContainsFunc(w.keep, func(k func(*telemetry.Trace) bool) bool { return !k(t) })
	}
}

// Hosts is a tcpdump expression for packets whose source ("src") or destination ("dst") is in a
// list.
func Hosts(end string, addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return end + " host (" + strings.Join(all, " or ") + ")"
}

// cameFrom reports whether a packet came from an end.
func cameFrom(t *telemetry.Trace, e *door.End) bool {
	if e.Port != 0 {
		return t.Live.Port == e.Port
	}
	return slices.Contains(e.IPs, flow.AddrIn(&t.Start, flow.IPSrc, flow.IPv6Src))
}

// mayReach reports whether a packet went to some addresses, or was dropped, or is not finished.
func mayReach(t *telemetry.Trace, addrs []netip.Addr) bool {
	if len(t.Verdict.Outputs) == 0 {
		return true
	}
	return slices.ContainsFunc(t.Steps, func(st telemetry.Step) bool {
		if st.Kind != telemetry.StepOutput {
			return false
		}
		dst := flow.AddrIn(&st.After, flow.IPDst, flow.IPv6Dst)
		return slices.Contains(addrs, dst) || etherType(&st.After) == packet.EtherTypeARP
	})
}

func etherType(k *flow.Key) uint64 { return flow.FieldByID(flow.EthType).Get(k).Lo }
