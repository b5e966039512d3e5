package answer

import (
	"fmt"
	"strings"
	"testing"
)

// TestPageMap goes from the map, with live rates, to a table, an entry and its
// object.
func TestPageMap(t *testing.T) {
	b := browse(t)
	b.traffic()
	b.Poll(`document.querySelectorAll("#map [id^=table-]").length > 20`)
	b.Poll(`document.querySelectorAll("#map .edge.busy").length > 5`)
	b.Poll(`document.querySelector("#map .drop.busy") !== null`)
	b.Poll(`document.querySelector('[data-figure="dropped"]').className === "bad"`)
	if over := b.Value(`document.querySelector("#map").scrollHeight - document.querySelector("#map").clientHeight`); over != "0" {
		t.Errorf("on a laptop %s pixels of the map are below the window", over)
	}
	b.Shot("map-light")
	b.Size(1280, 970)
	b.Shot("map-whole") // docs/page.png
	b.Size(1280, 800)
	b.Theme("dark")
	b.Shot("map-dark")
	b.Theme("light")

	guard := b.Value(`[...document.querySelectorAll("#map [role=link]")].find((g) => g.getAttribute("aria-label") === "Table SpoofGuard").id`)
	b.Click("#" + guard + " .box")
	b.Poll(`document.querySelectorAll("#panel .entries li").length > 10`)
	b.Poll(`[...document.querySelectorAll("#panel .entries li.busy")].some((e) => e.innerText.includes("nw_src=10.10.0.26"))`)
	b.Shot("table")
	b.Type(`#panel input[type="search"]`, "10.10.0.26")
	b.Poll(`document.querySelectorAll("#panel .entries li").length < 6`)
	b.Click("#panel .entries button")
	b.Poll(`document.querySelector("#panel .origins a")?.textContent === "Pod/default/client-a"`)
	b.Click("#panel .origins a")
	b.Poll(`document.querySelector("#panel .yaml")?.textContent.includes("nodeName: node-a")`)
	b.Poll(`document.querySelectorAll("#map .table.on").length > 3`)
	b.Shot("object")
	b.NoFaults()
}

// TestPageWalk walks a typed packet, and one that passes, step by step.
func TestPageWalk(t *testing.T) {
	b := browse(t)
	b.traffic()
	b.Goto(b.Base + "/#/walk")
	b.Poll(`document.querySelectorAll("#typed option").length > 3`)
	b.Put("#typed textarea", `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.96.0.24,tp_dst=80`)
	b.Click("#typed button.first")
	b.Poll(`document.querySelector("#way .where")?.textContent.startsWith("1 of ")`)
	steps := b.Value(`document.querySelectorAll("#way .hops li").length`)
	b.Poll(`document.querySelectorAll("#map .focus").length === 1`)
	b.Value(`document.activeElement.blur()`)
	b.Key("ArrowRight")
	b.Poll(`document.querySelector("#way .where").textContent.startsWith("2 of ")`)
	b.Click("#way .steps .first")
	b.Poll(`document.querySelector("#way .where").textContent.startsWith("3 of ")`)
	b.Poll(`document.querySelector("#way .hop").textContent.includes("SpoofGuard")`)
	b.Key("ArrowLeft")
	b.Poll(`document.querySelector("#way .change")?.textContent.startsWith("reg")`)
	for range 12 {
		b.Key("ArrowRight")
	}
	b.Shot("walk")
	b.Key("End")
	b.Poll(`document.querySelector("#way .where").textContent === "` + steps + ` of ` + steps + `"`)
	b.Poll(`document.querySelector("#way .verdict").textContent.startsWith("output to port")`)
	b.Poll(`document.querySelectorAll("#map .table.on").length > 15 && document.querySelectorAll("#map .edge.on").length > 15`)
	b.Shot("walk-end")

	b.Click("#panel details summary")
	b.Type("#live input", "src host 10.10.0.99")
	b.Click("#live button")
	b.Click(".caught button")
	b.Key("End")
	b.Poll(`document.querySelector("#way .verdict")?.textContent.includes("SpoofGuard")`)
	b.Poll(`document.querySelector("#map .drop.on") !== null`)
	b.Shot("walk-live")
	b.Put("#typed textarea", "in_port=client-a,nonsense=1")
	b.Click("#typed button.first")
	b.Poll(`document.querySelector("#way .fault")?.textContent.includes("nonsense")`)
	b.Forgive("status of 400") // the browser logs the answer that it got
	b.NoFaults()
}

// TestPageHostileName shows a name that would be an element, as the text it is.
func TestPageHostileName(t *testing.T) {
	b := browse(t)
	b.Goto(b.Base + "/#/object/ClusterNetworkPolicy%2Fhostile")
	b.Poll(`document.querySelector("#panel .yaml")?.textContent.includes("onerror=alert(1)")`)
	b.Poll(`[...document.querySelectorAll("#panel .past")].some((e) => e.textContent.includes("` + hostileName + `"))`)
	b.Goto(b.Base + "/#/table/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
	b.Poll(`document.querySelector("#panel h2")?.textContent === "` + hostileName + `"`)
	b.Poll(`document.querySelector("#panel .fault") !== null`)
	if n := b.Value(`document.images.length`); n != "0" {
		t.Errorf("%s images were made", n)
	}
	// The browser itself refuses to make markup of text.
	if got := b.Value(`(() => { try { document.body.innerHTML = "<p>x"; return "made"; } catch (e) { return e.name; } })()`); got != "TypeError" {
		t.Errorf("markup from text: %s", got)
	}
}

// TestPageKeyboard uses no mouse.
func TestPageKeyboard(t *testing.T) {
	b := browse(t)
	b.Poll(`document.querySelectorAll("#map .table").length > 20`)
	for _, k := range []struct{ key, hash string }{
		{"w", "#/walk"}, {"d", "#/drops"}, {"c", "#/connections"}, {"o", "#/objects"}, {"n", "#/nodes"}, {"b", "#/plots"}, {"m", "#/"}, {"d", "#/drops"}, {"Escape", "#/"},
	} {
		b.Key(k.key)
		b.Poll(fmt.Sprintf("location.hash === %q", k.hash))
	}
	b.Key("?")
	b.Poll(`document.querySelector("#help").open`)
	b.Shot("help")
	b.Click("#help button")
	b.Poll(`!document.querySelector("#help").open`)
	// Tab goes from the top of the page over links to the tables, and shows where it is.
	b.Value(`document.activeElement?.blur()`)
	for i := 0; b.Value(`document.activeElement?.getAttribute("aria-label")`) != "Table Classifier"; i++ {
		if i > 40 {
			t.Fatalf("after %d tabs the focus is on %s", i, b.Value(`document.activeElement.outerHTML.slice(0, 200)`))
		}
		b.Press("\t")
	}
	if width := b.Value(`getComputedStyle(document.activeElement.querySelector(".box")).strokeWidth`); width != "3px" {
		t.Errorf("the focus is shown by a frame of %s", width)
	}
	b.Press("\r")
	b.Poll(`location.hash === "#/table/Classifier"`)
	b.Poll(`document.activeElement.tagName === "H2"`)
	b.Key("/")
	b.Poll(`document.activeElement.type === "search"`)
	b.Press("w") // is a letter there
	b.Poll(`document.activeElement.value === "w" && location.hash === "#/table/Classifier"`)
	// And on, over an entry that opens, to an object, with a frame around each.
	b.Goto(b.Base + "/#/table/SpoofGuard")
	b.Poll(`document.querySelectorAll("#panel .entries li").length > 10 && document.activeElement.tagName === "H2"`)
	for i, has := range []string{"BUTTON", "A"} {
		for n := 0; b.Value(`document.activeElement.tagName + document.activeElement.matches("#panel .entries *")`) != has+"true"; n++ {
			if n > 10 {
				t.Fatalf("after %d tabs the focus is on %s", n, b.Value(`document.activeElement.outerHTML.slice(0, 200)`))
			}
			b.Press("\t")
		}
		if outline := b.Value(`getComputedStyle(document.activeElement).outlineStyle`); outline != "solid" {
			t.Errorf("the focus is shown by %s", outline)
		}
		b.Press("\r")
		if i == 0 {
			b.Poll(`document.activeElement.getAttribute("aria-expanded") === "true" && document.querySelector("#panel .origins a")`)
		}
	}
	b.Poll(`location.hash.startsWith("#/object/") && document.activeElement.tagName === "H2" && document.querySelector("#panel .yaml")`)
	b.Still()
	if moves := b.Value(`getComputedStyle(document.querySelector("#map .line")).transitionDuration`); moves != "0s" {
		t.Errorf("lines move for %s when nothing is to", moves)
	}
	b.NoFaults()
}

// TestPageStranger: a browser that was not let in gets no file, only what to do.
func TestPageStranger(t *testing.T) {
	b := browse(t)
	b.Forget()
	b.Goto(b.Base + "/style.css")
	if text := b.Value(`document.body.innerText`); !strings.HasPrefix(text, "401: run antrail page") {
		t.Errorf("a browser without a cookie sees %q", text)
	}
}
