package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// Refused edits. If the new state of an object is refused, its last good state stays in force.
// The same holds for all objects of a file that cannot be read. The object is then installed,
// but not as its source says, and the editor must learn that. The store holds the refused
// edits, and the Reconciler puts them into each Status.
//
// The source sets all its refused edits at once. The store sets those that it finds itself
// (store_refuse.go). A corrected edit, or that of a deleted object, is not in the next set.

// RefusedEdits has the objects whose old state stays, each with the place of the refused edit
// and the reason. Nobody may write one after its publication.
type RefusedEdits map[cluster.Key]string

// Keys returns the keys of the objects, in order.
func (e RefusedEdits) Keys() []cluster.Key {
	return slices.SortedFunc(maps.Keys(e), cluster.Key.Compare)
}

// SetRefusedEdits replaces the refused edits of the store's source.
func (s *Store) SetRefusedEdits(e RefusedEdits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setEdits(e, s.invalid)
}

// setEdits publishes the edits that the source refused and those that the store refused. The
// caller holds s.mu.
func (s *Store) setEdits(edited, invalid RefusedEdits) {
	s.edited, s.invalid = edited, invalid
	all := make(RefusedEdits, len(edited)+len(invalid))
	maps.Copy(all, invalid)
	maps.Copy(all, edited)
	s.edits.Store(&all)
}

// RefusedEdits returns the refused edits of the source and of the store. It takes no lock.
func (s *Store) RefusedEdits() RefusedEdits {
	if e := s.edits.Load(); e != nil {
		return *e
	}
	return nil
}

// refusedEdits returns the refused edits of a file. The objects in kept keep their old states.
// One without a problem of its own is in a part that cannot be read.
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

// unreadEdits marks all objects of a file as kept, because of a problem of the file.
func (f *manifestFile) unreadEdits(p manifest.Problem) RefusedEdits {
	edits := RefusedEdits{}
	for k := range f.objects {
		edits[k] = p.EditText()
	}
	return edits
}

// refusedEdits returns the refused edits of all files. The caller holds m.mu.
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
