//! Warnings about access categories that no cell uses, and EDCA settings that no flow uses.

use super::Warnings;
use crate::error::join;
use crate::keys::cell::CellTable;
use crate::keys::flow::FlowTable;
use crate::model::{Model, Path};
use paceline_path::wifi::{Category, CellModel};

impl Warnings<'_> {
    /// Warns about a flow's category if its path crosses no cell.
    pub(super) fn category(&mut self, path: &str, name: &str, flow: &FlowTable, model: &Model, paths: &[Path]) {
        let mut own = model.flows.iter().zip(paths).filter(|(of, _)| of.name == name);
        let in_a_cell =
            |(_, (there, back)): (_, &Path)| there.iter().chain(back).any(|link| model.links[*link].cell.is_some());
        if flow.access_category.is_some() && !own.any(in_a_cell) {
            self.note(join(path, "access_category"), "has no effect: no 802.11 cell is on its way");
        }
    }

    /// Warns about a cell's EDCA settings for categories that no flow over it has.
    pub(super) fn contention(&mut self, path: &str, table: &CellTable, model: &CellModel) {
        let Some(edca) = &table.edca else { return };
        let path = join(path, "edca");
        let Some(used) = &model.edca else {
            return self.note(path, "has no effect: no flow over the cell has an `access_category`");
        };
        for category in Category::ALL {
            if edca.of(category).is_some() && !used.categories.iter().any(|(of, _)| *of == category) {
                self.note(join(&path, category.name()), "has no effect: no flow over the cell is of this category");
            }
        }
    }
}
