package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
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
type RefusedEdits map[cluster.Key]string

// Keys are the objects, in order.
func (e RefusedEdits) Keys() []cluster.Key {
	return slices.SortedFunc(maps.Keys(e), cluster.Key.Compare)
}

// SetRefusedEdits sets the refused edits of the store's source in place of those before.
func (s *Store) SetRefusedEdits(e RefusedEdits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setEdits(e, s.invalid)
}

// setEdits publishes the edits that the source refused, and those that the store judged
// bad. s.mu is held.
func (s *Store) setEdits(edited, invalid RefusedEdits) {
	s.edited, s.invalid = edited, invalid
	all := make(RefusedEdits, len(edited)+len(invalid))
	maps.Copy(all, invalid)
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
func refusedEdits(file string, problems []manifest.Problem, kept map[cluster.Key]bool) RefusedEdits {
	if len(kept) == 0 {
		return nil
	}
	edits, unread := RefusedEdits{}, ""
	for _, p := range problems {
		switch _, known := edits[p.Key]; {
		case p.Ignored:
		case p.Key == cluster.Key{}:
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
func (f *manifestFile) unreadEdits(p manifest.Problem) RefusedEdits {
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
