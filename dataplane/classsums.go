package dataplane

import "github.com/antrail/antrail/flow"

// Sums over entries, for who looks once a second at a pipeline that may have a
// hundred thousand of them: what class an entry is of is asked once, and then a look
// reads one counter of each, sorts nothing and allocates nothing. Learned entries
// come and go without a change of the pipeline; they are looked through each time.

// ClassSums sum what entries have counted, by classes. They are for one goroutine, and good
// for one generation of the pipeline.
type ClassSums struct {
	sw         *Switch
	class      func(*flow.Entry) int
	generation uint64
	entries    []classed
	learned    map[*entry]int
	sums       []ClassSum
}

// classed is an entry of the pipeline.
type classed struct {
	*entry
	class int
}

// ClassSum is how many entries a class has, and what they counted.
type ClassSum struct{ Entries, Packets uint64 }

// ClassSums begins them. Classes are small numbers from 0.
func (s *Switch) ClassSums(class func(*flow.Entry) int) *ClassSums {
	t := &ClassSums{sw: s, class: class}
	p := s.program.Load()
	if p == nil {
		return t
	}
	t.generation = p.generation
	for _, tab := range p.tables {
		if tab != nil {
			tab.classifier.all(func(e *entry) { t.entries = append(t.entries, classed{e, class(e.Entry)}) })
		}
	}
	return t
}

// Generation is the pipeline's that they are of.
func (t *ClassSums) Generation() uint64 { return t.generation }

// Sum is the sums by class, good until the next call. It is not ok when the pipeline
// is another one by now.
func (t *ClassSums) Sum() (sums []ClassSum, ok bool) {
	t.sw.creditNow()
	p, now := t.sw.program.Load(), t.sw.clock()
	if p == nil || p.generation != t.generation {
		return nil, p == nil && t.generation == 0
	}
	clear(t.sums)
	for i := range t.entries {
		t.add(t.entries[i].entry, t.entries[i].class, now)
	}
	before := t.learned
	t.learned = nil
	for _, tab := range p.tables {
		if tab == nil || tab.live.learned.none() {
			continue
		}
		tab.live.learned.all(func(e *entry) {
			class, known := before[e]
			if !known {
				class = t.class(e.Entry)
			}
			if t.learned == nil {
				t.learned = make(map[*entry]int, len(before))
			}
			t.learned[e] = class
			t.add(e, class, now)
		})
	}
	return t.sums, true
}

func (t *ClassSums) add(e *entry, class int, now int64) {
	if e.expired(now) {
		return
	}
	for len(t.sums) <= class {
		t.sums = append(t.sums, ClassSum{})
	}
	t.sums[class].Entries++
	t.sums[class].Packets += e.packets.Load()
}
