package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/operator"
)

func TestSavedViewsAreTheOperatorsOwnAndBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		_, ada := b.enter("ada", b.hire("ada", operator.Viewer))
		_, bob := b.enter("bob", b.hire("bob", operator.Viewer))
		views := func(s operator.Session) (names []string) {
			must(t, d.Read(t.Context(), func(r db.Reader) error {
				list, err := b.Views(r, s.Name)
				for _, v := range list {
					names = append(names, v.Name+"="+v.Query)
				}
				return err
			}))
			return names
		}
		save := func(s operator.Session, name, query string) error {
			return b.SaveView(t.Context(), s, operator.View{Name: name, Query: query})
		}
		must(t, save(ada, "  Spain,   failed ", "country=ES"))
		must(t, save(ada, "Spain, failed", "country=ES&status=FAILURE")) // changed, not doubled
		must(t, save(bob, "mine", "client=acme"))
		if got := fmt.Sprint(views(ada), views(bob)); got != "[Spain, failed=country=ES&status=FAILURE] [mine=client=acme]" {
			t.Error(got)
		}
		must(t, b.RemoveView(t.Context(), bob, "Spain, failed")) // not his
		for i := 1; i < operator.ViewsMax; i++ {
			must(t, save(ada, fmt.Sprint("view ", i), "q=x"))
		}
		if err := save(ada, "one more", "q=x"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("past the limit: %v", err)
		}
		must(t, save(ada, "view 1", "q=y")) // an old name is no more of them
		must(t, b.RemoveView(t.Context(), ada, "view 1"))
		must(t, save(ada, strings.Repeat("é", operator.ViewNameMax), strings.Repeat("q", operator.ViewQueryMax)))
		for name, query := range map[string]string{"": "q=x", " ": "q=x", strings.Repeat("é", operator.ViewNameMax+1): "q=x",
			"long": strings.Repeat("q", operator.ViewQueryMax+1)} {
			if err := save(bob, name, query); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%.10q with %d bytes: %v", name, len(query), err)
			}
		}
		if len(views(ada)) != operator.ViewsMax || len(views(bob)) != 1 {
			t.Error(views(ada), views(bob))
		}
	})
}
