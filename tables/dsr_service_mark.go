package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// DSRServiceMark marks connections of Services in direct server return mode whose
// endpoint is on another Node. They go there untranslated, and the replies go
// straight to the client. It exists with DSR.
//
// Reads:  FromExternalRegMark, RemoteEndpointRegMark, DSRServiceRegMark,
// ct_state, the Service's address and port. To learn the endpoint, also
// EndpointIPField (IPv6: EndpointIP6Field) and EndpointPortField.
// Writes: DSRServiceRegMark. It learns the connection into SessionAffinity,
// because conntrack sees only one direction and cannot hold it.
// Next:   EndpointDNAT, which is also the table-miss.

// Timeouts of a DSR connection in seconds: without packets, and after its end.
const (
	dsrIdleTimeout    = 160
	dsrFinIdleTimeout = 5
)

// dsrInvalid drops packets that conntrack calls invalid and that belong to no DSR
// connection.
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
