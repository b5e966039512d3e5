package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Entries of a foreign controller, and those of flow files, have no objects that antrail knows.
// Their controller distinguishes them by cookies. So a cookie replaces the object: in walks, in
// drops, and in explain.

// cookieText is a cookie as explain accepts it, with an optional mask as in ovs-ofctl (-1 for
// all bits).
var cookieText = regexp.MustCompile(`^(?:cookie=)?(0[xX][0-9a-fA-F]+|[0-9]+)(?:/(-1|0[xX][0-9a-fA-F]+|[0-9]+))?$`)

// byCookie says whether entries have only cookies.
func (p *Pipeline) byCookie() bool { return p.Objects == nil && p.rows.Load() == nil }

// noObjects is the error of a question about objects.
func (p *Pipeline) noObjects() error {
	if p.byCookie() {
		return fmt.Errorf("%w; antrail explain COOKIE lists the entries with a cookie", ErrNoObjects)
	}
	return ErrNoObjects
}

// cookieOrigin is an entry's cookie as its origin; none if the cookie is 0.
func cookieOrigin(e *flow.Entry) []api.OriginText {
	if e.Cookie == 0 {
		return []api.OriginText{}
	}
	return []api.OriginText{{Object: fmt.Sprintf("cookie=0x%x", e.Cookie)}}
}

// explainCookie lists the entries with a cookie, or with its bits under a mask. is says that
// the text is a cookie.
func (p *Pipeline) explainCookie(text string) (all *api.ObjectEntries, is bool, err error) {
	parts := cookieText.FindStringSubmatch(text)
	if parts == nil {
		return nil, false, nil
	}
	cookie, err := strconv.ParseUint(parts[1], 0, 64)
	mask := ^uint64(0)
	if err == nil && parts[2] != "" && parts[2] != "-1" {
		mask, err = strconv.ParseUint(parts[2], 0, 64)
	}
	if err != nil {
		return nil, true, fmt.Errorf("%q: a cookie and its mask have 64 bits", text)
	}
	all = &api.ObjectEntries{Object: fmt.Sprintf("cookie=0x%x", cookie), State: "installed"}
	if mask != ^uint64(0) {
		all.Object += fmt.Sprintf("/0x%x", mask)
	}
	for _, f := range p.Switch.Flows() {
		if (f.Cookie^cookie)&mask == 0 {
			all.Entries = append(all.Entries, p.counted(&f))
		}
	}
	if all.Entries == nil {
		return nil, true, fmt.Errorf("no entry has %s; dump-flows shows all cookies", all.Object)
	}
	return all, true, nil
}

// Cookies are the cookies of the entries except 0, in order. The error is for a pipeline whose
// entries have objects, or no cookies.
func (p *Pipeline) Cookies() ([]api.CookieRecord, error) {
	if !p.byCookie() {
		return nil, errHasObjects
	}
	all := map[uint64]*api.CookieRecord{}
	last := map[uint64]int{} // the last table of each cookie; entries come by table
	for _, f := range p.Switch.Flows() {
		if f.Cookie == 0 {
			continue
		}
		r := all[f.Cookie]
		if r == nil {
			r = &api.CookieRecord{Object: fmt.Sprintf("cookie=0x%x", f.Cookie)}
			all[f.Cookie], last[f.Cookie] = r, -1
		}
		if int(f.Table) != last[f.Cookie] {
			r.Tables++
			last[f.Cookie] = int(f.Table)
		}
		r.Entries++
		r.Packets += f.Packets
		r.Bytes += f.Bytes
	}
	if len(all) == 0 {
		return nil, p.noObjects()
	}
	records := make([]api.CookieRecord, 0, len(all))
	for _, cookie := range slices.Sorted(maps.Keys(all)) {
		records = append(records, *all[cookie])
	}
	return records, nil
}

var errHasObjects = errors.New("entries have objects here, which antrail get lists; cookies are for entries of another controller")

// counted is an installed entry with its counters and origins.
func (p *Pipeline) counted(f *telemetry.FlowStats) api.Explained {
	return api.Explained{
		Entry:    strings.TrimSpace(f.Entry.Text(flow.Format{Names: p.Switch.Names()})),
		Counters: &api.EntryCounters{Packets: f.Packets, Bytes: f.Bytes}, Origins: p.OriginsOf(f.Entry),
	}
}

// explainInstalled explains a line of a dump by the installed entry.
func (p *Pipeline) explainInstalled(line string) ([]api.Explained, error) {
	match, _, _ := strings.Cut(dumpCookie.ReplaceAllString(line, ""), "actions=")
	entry, err := parse.Entry(match+" actions=drop", p.Switch.Names())
	if err != nil {
		return nil, err
	}
	for _, f := range p.Switch.FlowsIn(entry.Table) {
		if f.Entry.Identity() == entry.Identity() {
			return []api.Explained{p.counted(&f)}, nil
		}
	}
	return nil, fmt.Errorf("table %s has no entry %q", cmp.Or(p.Switch.Names().Table(entry.Table), strconv.Itoa(int(entry.Table))), strings.TrimSpace(match))
}

// dumpCookie matches the cookie in a dumped line.
var dumpCookie = regexp.MustCompile(`\bcookie=[^,\s]*,? ?`)
