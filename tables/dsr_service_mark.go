package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// DSRServiceMark marks the connections of Services in direct server return
// mode whose endpoint is on another Node. They go there untranslated, and the
// replies go straight to the client. It exists with DSR.
//
// Reads:  FromExternalRegMark, RemoteEndpointRegMark, DSRServiceRegMark,
// ct_state, the Service's address and port; the endpoint in EndpointIPField (IPv6:
// EndpointIP6Field) and EndpointPortField, to learn it.
// Writes: DSRServiceRegMark; learns the connection into SessionAffinity, since
// conntrack, which sees one direction only, cannot hold it.
// Next:   EndpointDNAT, which is also the table-miss.

// Seconds that a DSR connection is kept without packets, and after its end.
const (
	dsrIdleTimeout    = 160
	dsrFinIdleTimeout = 5
)

// dsrInvalid drops what conntrack finds invalid and no DSR connection claims.
func (p *Pipeline) dsrInvalid() []*flow.Entry {
	if !hasDSR(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableDSRServiceMark, priorityLow,
		match(tracked(layout.CtInv, 0), NotDSRServiceRegMark.Is()))}
}

func (p *Pipeline) learnDSR(s ServiceAddress) *flow.Entry {
	f := s.family()
	learn := &flow.Learn{
		Table: p.id(tableSessionAffinity), Priority: priorityHigh, IdleTimeout: dsrIdleTimeout,
		DeleteLearned: true, Cookie: p.cookie(forServices, s.Group),
		Specs: append(learnMatches(s, srcPortField(s.Proto), dstPortField(s.Proto), f.srcField(), f.dstField()),
			learnCopy(EndpointPortField), learnMark(EpSelectedRegMark), learnMark(DSRServiceRegMark),
			learnCopy(f.endpointField())),
	}
	if s.Proto == protoTCP {
		learn.FinIdleTimeout = dsrFinIdleTimeout
	}
	e := p.entry(forServices, tableDSRServiceMark, priorityNormal,
		match(atService(s), FromExternalRegMark.Is(), RemoteEndpointRegMark.Is(), NotDSRServiceRegMark.Is()),
		learn, DSRServiceRegMark.Set(), p.goNext(tableDSRServiceMark))
	e.Cookie = learn.Cookie
	return e
}
