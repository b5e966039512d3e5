package rules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/types"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Within a package, files call downwards: leaves at the bottom, the entry point at the
// top. A reader can then read one file after another. The order of the files is the one
// that lets the fewest references run upwards, as far as a simple search finds it.
//
// A reference is a name that a file uses and another file of the package declares: a
// constant, variable, type, function, method or field. However often the file uses the
// name, it is one reference. Test files do not count.

// mostUpward is how many percent of the references between a package's files may run
// against the order of the files. usualUpward is that of packages that are not listed.
const mostUpward, usualUpward = 25, 10

// tangledRooms are packages above usualUpward, with their figure. A number here may only
// fall.
var tangledRooms = map[string]int{
	"bench/forward": 12, "bench/gc": 18, "bench/ovs": 12, "bench/testbed": 12,
	"agent": 23, "agent/config": 14, "agent/pipeline": 14, "conntrack/store": 11, "conntrack/tuple": 11, "control/store": 24, "dataplane": 16, "hack/demo-k8s": 14,
	"host": 21, "ports/underlay": 19,
}

// TestFilesCallDownwards computes each package's order of files and the references that run
// against it.
func TestFilesCallDownwards(t *testing.T) {
	byDir := map[string][]*file{}
	for _, f := range read(t, false) {
		byDir[f.dir] = append(byDir[f.dir], f)
	}
	c := newTypeChecker(top(t), byDir)
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		if len(c.files[dir]) <= manyFiles {
			continue
		}
		g := c.references(dir)
		order := g.order()
		share := g.upwardShare(order)
		most, listed := tangledRooms[dir]
		most = min(max(most, usualUpward), mostUpward)
		switch {
		case share > most:
			t.Errorf("%s: %d percent of the references between its files run upwards; %d is the most. %s", dir, share, most, worst(g.upward(order)))
		case listed && share <= usualUpward:
			t.Errorf("%s: %d percent of the references between its files run upwards: remove its row from tangledRooms", dir, share)
		case listed && share < most-1:
			t.Errorf("%s: %d percent of the references between its files run upwards: write that number into tangledRooms, in place of %d", dir, share, most)
		}
	}
	for dir := range tangledRooms {
		if byDir[dir] == nil {
			t.Errorf("%s is in tangledRooms, and is no package any more", dir)
		}
	}
}

// TestOrderOfFiles gives the search files whose best order is known.
func TestOrderOfFiles(t *testing.T) {
	g := &fileGraph{files: []string{"leaf", "main", "middle", "side"}, uses: map[filePair]int{
		{"main", "middle"}: 5, {"middle", "leaf"}: 4, {"main", "leaf"}: 1, {"leaf", "main"}: 2, {"side", "leaf"}: 3,
	}}
	order := g.order()
	if up := g.upward(order); len(up) != 1 || up[filePair{"leaf", "main"}] != 2 {
		t.Errorf("upwards in %q: %v", order, up)
	}
	if share := g.upwardShare(order); share != 14 { // 2 of 15, rounded up
		t.Errorf("%d percent run upwards", share)
	}
}

// worst names the three pairs of files with the most references upwards.
func worst(upward map[filePair]int) string {
	pairs := slices.SortedFunc(maps.Keys(upward), func(a, b filePair) int {
		return cmp.Or(upward[b]-upward[a], strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
	})
	text := make([]string, 0, 3)
	for _, p := range pairs[:min(3, len(pairs))] {
		text = append(text, fmt.Sprintf("%s uses %d names of %s", p.from, upward[p], p.to))
	}
	return "The most: " + strings.Join(text, "; ") + ". Move what the lower file needs into it, or below it."
}

// filePair is two files of a package, by name: one uses what the other declares.
type filePair struct{ from, to string }

// fileGraph counts the references between the files of a package.
type fileGraph struct {
	files []string // sorted
	uses  map[filePair]int
}

// order puts the files in a row, the top first: the heuristic of Eades, Lin and Smyth (A
// fast and effective heuristic for the feedback arc set problem, 1993), then each file
// moves to its best place, until no move helps.
func (g *fileGraph) order() []string {
	order := g.greedy()
	for moved := true; moved; {
		moved = false
		for _, f := range g.files {
			if next, better := g.sift(order, f); better {
				order, moved = next, true
			}
		}
	}
	return order
}

// greedy takes files that use no other to the bottom, then files that no other uses to
// the top, then the file that uses others most and is used least to the top.
func (g *fileGraph) greedy() []string {
	var above, below []string
	left := slices.Clone(g.files)
	for len(left) > 0 {
		bestAt, best, atBottom := 0, math.MinInt, false
		for i, f := range left {
			out, in := g.degrees(f, left)
			switch {
			case out == 0:
				bestAt, best, atBottom = i, math.MaxInt, true
			case in == 0 && best < math.MaxInt-1:
				bestAt, best, atBottom = i, math.MaxInt-1, false
			case out-in > best:
				bestAt, best, atBottom = i, out-in, false
			}
		}
		if atBottom {
			below = append(below, left[bestAt])
		} else {
			above = append(above, left[bestAt])
		}
		left = slices.Delete(left, bestAt, bestAt+1)
	}
	slices.Reverse(below)
	return append(above, below...)
}

// degrees counts the references from a file to others, and from others to it.
func (g *fileGraph) degrees(f string, others []string) (out, in int) {
	for _, o := range others {
		out += g.uses[filePair{f, o}]
		in += g.uses[filePair{o, f}]
	}
	return out, in
}

// sift moves a file to the place where the fewest references run upwards.
func (g *fileGraph) sift(order []string, f string) (next []string, better bool) {
	at := slices.Index(order, f)
	rest := slices.Delete(slices.Clone(order), at, at+1)
	// cost is the references upwards that f has at a place, against the top.
	cost, costs := 0, make([]int, 0, len(order))
	costs = append(costs, 0)
	for _, o := range rest { // f moves below o
		cost += g.uses[filePair{f, o}] - g.uses[filePair{o, f}]
		costs = append(costs, cost)
	}
	to := at
	for i, c := range costs {
		if c < costs[to] {
			to = i
		}
	}
	return slices.Insert(rest, to, f), to != at
}

// upward is the references that run against an order.
func (g *fileGraph) upward(order []string) map[filePair]int {
	place := map[string]int{}
	for i, f := range order {
		place[f] = i
	}
	all := map[filePair]int{}
	for p, n := range g.uses {
		if place[p.from] > place[p.to] {
			all[p] = n
		}
	}
	return all
}

// upwardShare is those references in percent, rounded up.
func (g *fileGraph) upwardShare(order []string) int {
	all, up := 0, 0
	for _, n := range g.uses {
		all += n
	}
	for _, n := range g.upward(order) {
		up += n
	}
	if all == 0 {
		return 0
	}
	return (100*up + all - 1) / all
}

// typeChecker finds out what names mean, without the packages of others: to read those
// would take longer than all other rules. So it does not know the type of an expression
// that comes from there.
type typeChecker struct {
	files map[string][]*file // by directory, those that are built on Linux
	done  map[string]*checked
}

// checked is a package, with what its identifiers mean if it has many files.
type checked struct {
	pkg  *types.Package
	uses map[*ast.Ident]types.Object
}

func newTypeChecker(root string, byDir map[string][]*file) *typeChecker {
	c := &typeChecker{map[string][]*file{}, map[string]*checked{}}
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	for dir, files := range byDir {
		for _, f := range files {
			if built, err := linux.MatchFile(filepath.Join(root, dir), path.Base(f.path)); built && err == nil {
				c.files[dir] = append(c.files[dir], f)
			}
		}
	}
	return c
}

// Import gives go/types a package of ours, and an empty one in place of any other.
func (c *typeChecker) Import(name string) (*types.Package, error) {
	if dir, ours := strings.CutPrefix(name, module); ours && c.files[dir] != nil {
		return c.check(dir).pkg, nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

func (c *typeChecker) check(dir string) *checked {
	if p := c.done[dir]; p != nil {
		return p
	}
	p := &checked{uses: map[*ast.Ident]types.Object{}}
	c.done[dir] = p
	conf := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: len(c.files[dir]) <= manyFiles}
	var trees []*ast.File
	for _, f := range c.files[dir] {
		trees = append(trees, f.tree)
	}
	p.pkg, _ = conf.Check(module+dir, c.files[dir][0].set, trees, &types.Info{Uses: p.uses})
	return p
}

// references counts the references between the files of a package.
func (c *typeChecker) references(dir string) *fileGraph {
	p, g := c.check(dir), &fileGraph{uses: map[filePair]int{}}
	set, members := c.files[dir][0].set, membersByName(c.files[dir])
	type reference struct {
		pair filePair
		name string
	}
	seen := map[reference]bool{}
	use := func(id *ast.Ident, to string) {
		r := reference{filePair{path.Base(set.Position(id.Pos()).Filename), to}, id.Name}
		if r.pair.from != to && !seen[r] {
			seen[r] = true
			g.uses[r.pair]++
		}
	}
	for id, o := range p.uses {
		if o.Pkg() == p.pkg && isShared(o, p.pkg) {
			use(id, path.Base(set.Position(o.Pos()).Filename))
		}
	}
	for _, f := range c.files[dir] {
		g.files = append(g.files, path.Base(f.path))
		ast.Inspect(f.tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && p.uses[sel.Sel] == nil && !sel.Sel.IsExported() && len(members[sel.Sel.Name]) == 1 {
				use(sel.Sel, members[sel.Sel.Name][0])
			}
			return true
		})
	}
	slices.Sort(g.files)
	return g
}

// isShared says whether other files of a package can use an object: it is declared at the
// top of a file, or is a method or field.
func isShared(o types.Object, pkg *types.Package) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == pkg.Scope()
	case *types.Func:
		return o.Signature().Recv() != nil || o.Parent() == pkg.Scope()
	}
	return o.Parent() == pkg.Scope()
}

// membersByName is which files declare a method or field of a name. If one file does, a
// selector that is not exported and whose type is not known means that one.
func membersByName(files []*file) map[string][]string {
	all := map[string][]string{}
	for _, f := range files {
		name := path.Base(f.path)
		add := func(ids ...*ast.Ident) {
			for _, id := range ids {
				if !slices.Contains(all[id.Name], name) {
					all[id.Name] = append(all[id.Name], name)
				}
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					add(n.Name)
				}
			case *ast.StructType:
				for _, field := range n.Fields.List {
					add(field.Names...)
				}
			case *ast.InterfaceType:
				for _, field := range n.Methods.List {
					add(field.Names...)
				}
			}
			return true
		})
	}
	return all
}
