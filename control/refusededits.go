package control

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/antrail/antrail/internal/printable"
)

// Refused edits. An object whose new state is refused stays as it was when it was last
// good, and so do all objects of a file that cannot be read. The old state is in force
// then, so the object is installed; what its source says now is not in force, and
// whoever edited it has to see that. The store keeps the refused edits of its source, and
// the Reconciler puts them into each Status.
//
// The source sets all of its own at once, and the store those that it judges
// (store_refuse.go): an edit that is mended, or whose object is deleted, is not among the
// next ones.

// RefusedEdits says of each object that stays as it was before a refused edit where that
// edit stands and what is wrong with it. Nobody writes to one that was handed out.
type RefusedEdits map[Key]string

// Keys are the objects, in order.
func (e RefusedEdits) Keys() []Key { return slices.SortedFunc(maps.Keys(e), Key.Compare) }

// LastGoodStays ends the reason of a problem whose object stays as it was.
const LastGoodStays = "; the last good one stays"

// EditText is a problem as a refused edit: FILE:LINE: FIELD: REASON. Of an object that
// comes from an API server its name stands for the place.
func (p Problem) EditText() string {
	parts := []string{p.Source.String()}
	if p.Source.Line == 0 && p.Key != (Key{}) {
		parts[0] = p.Key.String()
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return printable.Text(strings.Join(append(parts, strings.TrimSuffix(p.Reason, LastGoodStays)), ": "))
}

// SetRefusedEdits sets the refused edits of the store's source in place of those before.
func (s *Store) SetRefusedEdits(e RefusedEdits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setEdits(e, s.judgedBad)
}

// setEdits publishes the edits that the source refused, and those that the store judged
// bad. s.mu is held.
func (s *Store) setEdits(edited, judgedBad RefusedEdits) {
	s.edited, s.judgedBad = edited, judgedBad
	all := make(RefusedEdits, len(edited)+len(judgedBad))
	maps.Copy(all, judgedBad)
	maps.Copy(all, edited)
	s.edits.Store(&all)
}

// RefusedEdits are those of the store's source and of the store now. It takes no lock.
func (s *Store) RefusedEdits() RefusedEdits {
	if e := s.edits.Load(); e != nil {
		return *e
	}
	return nil
}

// refusedEdits are the refused edits of a file of which some objects stay as they were.
// An object without a problem of its own stays because of a part that cannot be read.
func refusedEdits(file string, problems []Problem, kept map[Key]bool) RefusedEdits {
	if len(kept) == 0 {
		return nil
	}
	edits, unread := RefusedEdits{}, ""
	for _, p := range problems {
		switch _, known := edits[p.Key]; {
		case p.Ignored:
		case p.Key == Key{}:
			unread = cmp.Or(unread, p.EditText())
		case kept[p.Key] && !known:
			edits[p.Key] = p.EditText()
		}
	}
	for k := range kept {
		if edits[k] == "" {
			edits[k] = cmp.Or(unread, file+": it has more faults than are listed")
		}
	}
	return edits
}

// unread says of all objects of a file that they stay, because of a problem of the file.
func (f *manifestFile) unreadEdits(p Problem) RefusedEdits {
	edits := RefusedEdits{}
	for k := range f.objects {
		edits[k] = p.EditText()
	}
	return edits
}

// refusedEdits are those of all files. m.mu is held.
func (m *Manifests) refusedEdits() RefusedEdits {
	all := RefusedEdits{}
	for _, f := range m.files {
		maps.Copy(all, f.edits)
		if m.fault != nil {
			maps.Copy(all, f.unreadEdits(*m.fault))
		}
	}
	return all
}

// ShowRefusedEdits has each Status tell of the refused edits that edits returns. It is
// called before any other method, and edits takes no lock.
func (r *Reconciler) ShowRefusedEdits(edits func() RefusedEdits) { r.edits = edits }

// RefusedEdits are those of all objects, also of kinds that have no Status.
func (r *Reconciler) RefusedEdits() RefusedEdits {
	if r.edits == nil {
		return nil
	}
	return r.edits()
}

// AppliesTo says whether a policy applies to a Pod of this Node.
func (r *Reconciler) AppliesTo(policy Key, pod Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.policies.policies == nil || r.policies.policies.plans[policy] == nil {
		return false
	}
	for _, s := range r.policies.policies.plans[policy].specs {
		for _, set := range s.local {
			if _, is := set.members[pod]; is {
				return true
			}
		}
	}
	return false
}
